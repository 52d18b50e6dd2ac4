//! Tests of the table `labelled_tickets` of SQLite, which triggers maintain as a covering index of open tickets by label. After any
//! sequence of writes to tickets and labels, the table must contain the open tickets of each label.

use proptest::{prelude::*, test_runner::TestRunner};
use sea_orm::DbBackend;

use crate::{
    domain::{
        custom_fields::Comparable,
        paging::{PageRequest, Position},
        ticket_field_filters::{FieldTest, Test},
        ticket_filters::{LabelFilter, LabelOperator, ShownTickets, TicketFilter},
        tickets::Ticket,
        time::Timestamp,
    },
    store::{
        fixture::{Fixture, first},
        parameterised_sql::Sql,
        statement::pages::page_sql,
        tickets::bloom_filters::{BloomBits, FieldBloomBits},
    },
};

const NOW: Timestamp = Timestamp::from_millis(10_000_000);
const CONVERSATIONS: u8 = 3;
const TICKETS: u8 = 6;
const LABELS: u8 = 3;

#[derive(Clone, Debug)]
enum Step {
    Open { ticket: u8, conversation: u8 },
    Close { ticket: u8 },
    Reopen { ticket: u8 },
    Move { ticket: u8, conversation: u8 },
    Set { ticket: u8, column: &'static str, value: u8 },
    Import { ticket: u8, conversation: u8, open: bool },
    Remove { ticket: u8 },
    Label { conversation: u8, label: u8 },
    Unlabel { conversation: u8, label: Option<u8> },
}

fn step() -> impl Strategy<Value = Step> {
    let (ticket, conversation, label) = (|| 0..TICKETS, || 0..CONVERSATIONS, || 0..LABELS);
    let column = prop::sample::select(vec!["is_spam", "sort_at", "field_marks", "text_marks", "snoozed_until"]);
    prop_oneof![
        4 => (ticket(), conversation()).prop_map(|(ticket, conversation)| Step::Open { ticket, conversation }),
        1 => ticket().prop_map(|ticket| Step::Close { ticket }),
        2 => ticket().prop_map(|ticket| Step::Reopen { ticket }),
        1 => (ticket(), conversation()).prop_map(|(ticket, conversation)| Step::Move { ticket, conversation }),
        3 => (ticket(), column, 0..2_u8).prop_map(|(ticket, column, value)| Step::Set { ticket, column, value }),
        1 => (ticket(), conversation(), any::<bool>()).prop_map(|(ticket, conversation, open)| Step::Import { ticket, conversation, open }),
        1 => ticket().prop_map(|ticket| Step::Remove { ticket }),
        4 => (conversation(), label()).prop_map(|(conversation, label)| Step::Label { conversation, label }),
        2 => (conversation(), prop::option::of(label())).prop_map(|(conversation, label)| Step::Unlabel { conversation, label }),
    ]
}

fn statement(step: &Step, store: &str) -> String {
    let at = |ticket: &u8| format!("WHERE store_id = '{store}' AND id = 't{ticket}'");
    let free = |conversation: &u8| {
        format!("NOT EXISTS (SELECT 1 FROM tickets o WHERE o.store_id = '{store}' AND o.conversation_id = 'v{conversation}' AND o.is_open)")
    };
    let insert = |ticket: &u8, conversation: &u8, open: bool| {
        format!(
            "INSERT INTO tickets (store_id, id, ticket_number, is_open, is_spam, is_follow_up, channel, contact_id, account_id, \
             conversation_id, opened_at, ticket_fields, label_marks, field_marks, text_marks, sort_at, created_at, updated_at) \
             SELECT '{store}', 't{ticket}', 't{ticket}', {open}, FALSE, FALSE, 'line', 'k1', 'a1', 'v{conversation}', 0, '{{}}', 0, 0, 0, \
             {ticket}, 0, 0 WHERE {}",
            if open { free(conversation) } else { "TRUE".to_owned() }
        )
    };
    match step {
        Step::Open { ticket, conversation } => insert(ticket, conversation, true) + " ON CONFLICT (store_id, id) DO NOTHING",
        Step::Close { ticket } => format!("UPDATE tickets SET is_open = FALSE {}", at(ticket)),
        Step::Reopen { ticket } => format!(
            "UPDATE tickets SET is_open = TRUE, sort_at = sort_at + 1 {} AND NOT EXISTS (SELECT 1 FROM tickets o \
             WHERE o.store_id = tickets.store_id AND o.conversation_id = tickets.conversation_id AND o.is_open)",
            at(ticket)
        ),
        Step::Move { ticket, conversation } => {
            format!("UPDATE tickets SET conversation_id = 'v{conversation}' {} AND {}", at(ticket), free(conversation))
        }
        Step::Set { ticket, column, value } => format!("UPDATE tickets SET {column} = {value} {}", at(ticket)),
        Step::Import { ticket, conversation, open } => {
            insert(ticket, conversation, *open)
                + " ON CONFLICT (store_id, id) DO UPDATE SET is_open = excluded.is_open, conversation_id = excluded.conversation_id, \
                   sort_at = excluded.sort_at + 7, is_spam = TRUE"
        }
        Step::Remove { ticket } => format!("DELETE FROM tickets {}", at(ticket)),
        Step::Label { conversation, label } => format!(
            "INSERT INTO conversation_labels (store_id, conversation_id, label_id) VALUES ('{store}', 'v{conversation}', 'l{label}') \
             ON CONFLICT DO NOTHING"
        ),
        Step::Unlabel { conversation, label } => {
            let one = label.map_or_else(String::new, |label| format!(" AND label_id = 'l{label}'"));
            format!("DELETE FROM conversation_labels WHERE store_id = '{store}' AND conversation_id = 'v{conversation}'{one}")
        }
    }
}

/// Returns the rows that `labelled_tickets` has, and the rows that it should have.
async fn rows(fixture: &Fixture) -> [Vec<String>; 2] {
    let all = async |columns: &str, from: &str| {
        let sql = format!("SELECT {} FROM {from} ORDER BY 1", columns.replace(", ", " || ' ' || "));
        fixture.db.all(Sql::fixed(&sql), |cells| cells.take::<String>()).await.unwrap()
    };
    [
        all("label_id, is_spam, sort_at, ticket_id, field_marks, text_marks", "labelled_tickets").await,
        all(
            "l.label_id, t.is_spam, t.sort_at, t.id, t.field_marks, t.text_marks",
            "tickets t JOIN conversation_labels l ON l.store_id = t.store_id AND l.conversation_id = t.conversation_id WHERE t.is_open",
        )
        .await,
    ]
}

#[test]
fn the_list_of_open_tickets_by_label_stays_exact_after_random_changes() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(Fixture::alone());
    if fixture.db.backend() != DbBackend::Sqlite {
        return;
    }
    runtime.block_on(async {
        for conversation in 0..CONVERSATIONS {
            fixture.conversation(&format!("v{conversation}"), |_| {}).await;
        }
    });
    let mut runner = TestRunner::new(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() });
    let execute = |statement: &str| runtime.block_on(fixture.execute(statement)).unwrap();
    let outcome = runner.run(&(any::<bool>(), prop::collection::vec(step(), 1..25)), |(full, steps)| {
        execute("DELETE FROM tickets; DELETE FROM conversation_labels");
        if full {
            for each in 0..CONVERSATIONS {
                execute(&statement(&Step::Open { ticket: each, conversation: each }, fixture.store.as_str()));
                execute(&statement(&Step::Label { conversation: each, label: each }, fixture.store.as_str()));
                execute(&statement(&Step::Label { conversation: each, label: 0 }, fixture.store.as_str()));
            }
        }
        let begun = runtime.block_on(rows(&fixture));
        prop_assert_eq!(begun.map(|rows| rows.len()), [if full { 5 } else { 0 }; 2]);
        for step in steps {
            execute(&statement(&step, fixture.store.as_str()));
            let [kept, meant] = runtime.block_on(rows(&fixture));
            prop_assert_eq!(kept, meant, "{:?}", step);
        }
        Ok(())
    });
    outcome.unwrap();
}

/// Creates a store with open tickets, each in a conversation of its own. One ticket in five has the label `fifth`, one in seven the label
/// `seventh`, and twenty in a hundred have a score below 20.
async fn open_shop(tickets: i64) -> Fixture {
    let fixture = Fixture::alone().await;
    let store = &fixture.store;
    let numbers = format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {tickets}) ");
    let marks = |bits: &[BloomBits]| bits.iter().copied().collect::<BloomBits>().bits();
    let [fifth, seventh] = ["fifth", "seventh"].map(|label| marks(&[BloomBits::of_labels([&label.into()])]));
    let labels = format!("(CASE i % 5 WHEN 0 THEN {fifth} ELSE 0 END) | (CASE i % 7 WHEN 0 THEN {seventh} ELSE 0 END)");
    let number = |field: &str, number: i64| FieldBloomBits::of(&field.into(), [&Comparable::Number(number as f64)]).field_marks.bits();
    let scores: String = (0..100).map(|score| format!("WHEN {score} THEN {} ", number("score", score))).collect();
    let parity = format!("CASE i % 2 WHEN 0 THEN {} ELSE {} END", number("parity", 0), number("parity", 1));
    for insert in [
        format!(
            "INSERT INTO conversations (store_id, id, channel, account_id, contact_id, display_name, reference_id, label_ids, label_marks, \
             is_spam, unread_count, message_count, sort_at, created_at, updated_at) \
             SELECT '{store}', 'v' || i, 'line', 'a1', 'k1', 'x', 'v' || i, '[]', {labels}, FALSE, 0, 0, i, i, i FROM n"
        ),
        format!(
            "INSERT INTO conversation_labels (store_id, conversation_id, label_id) SELECT '{store}', 'v' || i, 'fifth' FROM n WHERE i % 5 = 0"
        ),
        format!(
            "INSERT INTO tickets (store_id, id, ticket_number, channel, contact_id, account_id, conversation_id, ticket_fields, opened_at, \
             sort_at, created_at, updated_at, is_open, is_spam, is_follow_up, field_marks, text_marks, label_marks) \
             SELECT '{store}', 't' || i, CAST(i AS TEXT), 'line', 'k1', 'a1', 'v' || i, '{{}}', i, i / 2, i, i, TRUE, FALSE, FALSE, \
             (CASE i % 100 {scores}END) | ({parity}), 0, {labels} FROM n"
        ),
        format!(
            "INSERT INTO conversation_labels (store_id, conversation_id, label_id) SELECT '{store}', 'v' || i, 'seventh' FROM n WHERE i % 7 = 0"
        ),
        format!(
            "INSERT INTO ticket_field_values (store_id, ticket_id, field_id, position, number_value) \
             SELECT '{store}', 't' || i, 'score', 0, i % 100 FROM n UNION ALL SELECT '{store}', 't' || i, 'parity', 0, i % 2 FROM n"
        ),
    ] {
        fixture.execute(&format!("{numbers}{insert}")).await.unwrap();
    }
    fixture
}

fn labelled(operator: LabelOperator, labels: &[&str]) -> TicketFilter {
    let label_ids = labels.iter().map(|label| (*label).into()).collect();
    TicketFilter { labels: Some(LabelFilter { operator, label_ids }), ..TicketFilter::default() }
}

#[tokio::test]
async fn paging_through_labelled_tickets_returns_all_matches_in_order() {
    use LabelOperator::*;
    let fixture = open_shop(2_000).await;
    let (db, store) = (&fixture.db, &fixture.store);
    fixture
        .execute("UPDATE tickets SET is_spam = TRUE WHERE id = 't990'; UPDATE tickets SET snoozed_until = 99999999 WHERE id = 't985'")
        .await
        .unwrap();
    let field = |id: &str, test: Test| FieldTest { field_id: id.into(), test };
    let below = |bound: f64| vec![field("score", Test::Below(bound))];
    let (odd, zero) = (|| vec![Comparable::Number(1.0)], || vec![Comparable::Number(0.0)]);
    let even = |test: Test| vec![field("score", Test::Between(10.0, 59.0)), field("parity", test)];
    for (operator, labels, tests, wanted) in [
        (ContainsAny, &["fifth"][..], vec![], (|i| i % 5 == 0) as fn(i64) -> bool),
        (ContainsAny, &["fifth", "fifth"], vec![], |i| i % 5 == 0),
        (ContainsAny, &["fifth"], below(20.0), |i| i % 5 == 0 && i % 100 < 20),
        (ContainsAny, &["fifth"], even(Test::AllOf(zero())), |i| i % 10 == 0 && (10..60).contains(&(i % 100))),
        (ContainsAny, &["fifth"], even(Test::NoneOf(odd())), |i| i % 10 == 0 && (10..60).contains(&(i % 100))),
        (ContainsAny, &["fifth"], even(Test::Present), |i| i % 5 == 0 && (10..60).contains(&(i % 100))),
        (ContainsAny, &["fifth"], even(Test::Absent), |_| false),
        (ContainsAny, &["fifth", "seventh"], even(Test::AllOf(zero())), |i| {
            i % 2 == 0 && (i % 5 == 0 || i % 7 == 0) && (10..60).contains(&(i % 100))
        }),
        (DoesNotContainAny, &["fifth"], even(Test::NoneOf(odd())), |i| i % 2 == 0 && i % 5 != 0 && (10..60).contains(&(i % 100))),
        (ContainsAny, &["fifth", "seventh"], vec![], |i| i % 5 == 0 || i % 7 == 0),
        (ContainsAny, &["none"], vec![], |_| false),
        (ContainsAll, &["fifth", "seventh"], vec![], |i| i % 35 == 0),
        (ContainsAll, &["fifth", "fifth"], below(50.0), |i| i % 5 == 0 && i % 100 < 50),
        (ContainsAll, &["fifth", "none"], vec![], |_| false),
        (ContainsAll, &["seventh", "seventh"], below(20.0), |i| i % 7 == 0 && i % 100 < 20),
        (DoesNotContainAny, &["fifth"], below(20.0), |i| i % 5 != 0 && i % 100 < 20),
    ] {
        let filter = labelled(operator, labels);
        // This test is about lists that are scanned. So `driving` must find no condition that only few tickets fulfil: these tickets would
        // be looked up by their ids. It may find one for the label `none`, which no ticket has, and on PostgreSQL, where up to 1,000
        // tickets count as few.
        let driving = db.find_driving_condition(store, &filter, ShownTickets::Open, &tests, db.few_tickets()).await.unwrap();
        assert!(driving.is_none() || labels.contains(&"none") || db.backend() == DbBackend::Postgres, "{operator:?} {labels:?}");
        let mut expected: Vec<i64> = (1..=2_000).filter(|i| wanted(*i) && ![985, 990].contains(i)).collect();
        expected.sort_by_key(|i| (i / 2, format!("t{i}")));
        expected.reverse();
        let (mut page, mut listed) = (PageRequest { count: true, ..first(17) }, Vec::new());
        loop {
            let read = db.tickets(store, &filter, ShownTickets::Open, &tests, NOW, &page).await.unwrap();
            assert!(read.total.is_none_or(|total| total == expected.len() as u64), "{operator:?} {labels:?} {:?}", read.total);
            listed.extend(read.rows.iter().map(|ticket| ticket.id.as_str()[1..].parse::<i64>().unwrap()));
            match read.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        assert_eq!(listed, expected, "{operator:?} {labels:?} {tests:?}");
    }
}

#[tokio::test]
async fn the_migration_lists_existing_tickets_by_label() {
    let fixture = open_shop(100).await;
    if fixture.db.backend() != DbBackend::Sqlite {
        return;
    }
    fixture.execute("UPDATE tickets SET is_open = FALSE WHERE id = 't5'").await.unwrap();
    let before = rows(&fixture).await;
    assert_eq!(before[0].len(), 20 + 14 - 1);
    fixture.migrate_again("m0009_labelled").await;
    assert_eq!(rows(&fixture).await, before);
}

#[tokio::test]
async fn a_filter_by_label_reads_only_tickets_with_that_label() {
    let fixture = open_shop(5_000).await;
    let (db, store) = (&fixture.db, &fixture.store);
    if db.backend() != DbBackend::Sqlite {
        return;
    }
    let filter = labelled(LabelOperator::ContainsAny, &["fifth"]);
    let tests = [FieldTest { field_id: "score".into(), test: Test::Below(20.0) }];
    let visits = async |tests: &[FieldTest], after: Option<i64>| {
        let page = PageRequest { after: after.map(|at| Position { at, id: "t".to_owned(), rank: None, as_of: None }), ..first(20) };
        let driving = db.find_driving_condition(store, &filter, ShownTickets::Open, tests, db.few_tickets()).await.unwrap();
        assert!(driving.is_none(), "many have such a score, and what the label has is the list");
        let mut conditions = db.ticket_conditions(store, &filter, ShownTickets::Open, NOW);
        let source = db.ticket_source(&filter, ShownTickets::Open, tests, None, &mut conditions);
        let plan = db.page_plan::<Ticket>(source, conditions, &page).await.unwrap();
        let keyset = if after.is_some() { " AND (sort_at,ticket_id)<(?,?))" } else { ")" };
        let searches: Vec<_> = plan.iter().filter(|step| step.starts_with("SEARCH")).map(String::as_str).collect();
        let list = format!("SEARCH labelled_tickets USING PRIMARY KEY (store_id=? AND label_id=? AND is_spam=?{keyset}");
        let values = "SEARCH v USING PRIMARY KEY (store_id=? AND ticket_id=? AND field_id=?)";
        let row = "SEARCH tickets USING INDEX sqlite_autoindex_tickets_1 (store_id=? AND id=?)";
        // The subquery that tests whether any ticket has a number below zero, for which the Bloom pre-filter needs more choices
        // (`bloom_filters`). It runs once.
        let rare = "SEARCH v USING COVERING INDEX ticket_field_values_by_number (store_id=? AND field_id=? AND number_value<?)";
        let steps = [list.as_str()].into_iter().chain(tests.iter().flat_map(|_| [rare, values])).chain([row]);
        assert!(steps.eq(searches.iter().copied()), "{plan:?}");
        let at = plan.iter().position(|step| step == rare);
        assert!(at.is_none_or(|at| plan[at - 1].starts_with("SCALAR SUBQUERY")), "{plan:?}");
        let mut conditions = db.ticket_conditions(store, &filter, ShownTickets::Open, NOW);
        let source = db.ticket_source(&filter, ShownTickets::Open, tests, None, &mut conditions);
        db.page_cost::<Ticket>(&source, conditions, &page).await
    };
    for (tests, most) in [(&[][..], 800), (&tests, 4_500)] {
        let (front, far) = (visits(tests, None).await, visits(tests, Some(1_000)).await);
        assert!(front < most && far < front + front / 3 + 30, "{front} on the first page, {far} far behind");
    }
    // The list is read by the rarer of the two conditions: the label (its list is scanned) or the field value (its index is used).
    fixture.label("v1", "few").await;
    let fewer = [FieldTest { field_id: "score".into(), test: Test::Between(0.0, 1.0) }];
    for (label, starts) in [("fifth", true), ("few", false)] {
        let filter = labelled(LabelOperator::ContainsAny, &[label]);
        let driving = db.find_driving_condition(store, &filter, ShownTickets::Open, &fewer, db.few_tickets()).await.unwrap();
        assert_eq!(driving.is_some(), starts, "{label}");
    }
    // The stored total is raised to a million open tickets. In a list of this length, thousands of tickets count as few for a total. If
    // more tickets have the label than the value, the total uses the index of the value. If fewer tickets have the label, it does not.
    fixture.execute("UPDATE totals SET value = 1000000 WHERE name = 'tickets.open'").await.unwrap();
    let several = [FieldTest { field_id: "score".into(), test: Test::Between(0.0, 9.0) }];
    for (label, starts) in [("fifth", true), ("few", false)] {
        let filter = labelled(LabelOperator::ContainsAny, &[label]);
        assert_eq!(
            db.find_driving_condition_of_total(store, &filter, ShownTickets::Open, &several, NOW).await.unwrap().is_some(),
            starts,
            "{label}"
        );
        let counted = PageRequest { count: true, ..first(20) };
        let total = db.tickets(store, &filter, ShownTickets::Open, &several, NOW, &counted).await.unwrap().total;
        assert_eq!(total, Some(if starts { 100 } else { 1 }), "{label}");
    }
    // The statement of a total scans the thousand tickets of the label, and not all five thousand.
    let total = async |labels: &[&str]| {
        let filter = labelled(LabelOperator::ContainsAny, labels);
        let conditions = db.ticket_conditions(store, &filter, ShownTickets::Open, NOW);
        let sql = db.filtered_total_sql(&filter, ShownTickets::Open, &tests, None, conditions);
        assert_eq!(db.count(sql.clone()).await.unwrap(), 200);
        db.query_cost(sql).await
    };
    let (of_label, scanned) = (total(&["fifth"]).await, total(&["fifth", "none"]).await);
    assert!(of_label * 3 < scanned * 2, "{of_label} and {scanned}");
}

/// Asserts the order of look-ups. A test with a less selective Bloom pre-filter comes first, since it rejects more of the tickets that
/// passed the pre-filters. A test that most tickets pass comes last: in SQLite's query plan, only its values come after the ticket's row.
#[tokio::test]
async fn field_values_are_looked_up_before_the_ticket_least_selective_filter_first() {
    let fixture = open_shop(1_000).await;
    let (db, store) = (&fixture.db, &fixture.store);
    let field = |test: Test| FieldTest { field_id: "score".into(), test };
    let (some, one) = (field(Test::Below(60.0)), field(Test::AnyOf(vec![Comparable::Number(8.0)])));
    let all = field(Test::AllOf(vec![Comparable::Number(8.0)]));
    let others = field(Test::NoneOf(vec![Comparable::Number(9.0)]));
    let page = |filter: &TicketFilter, tests: &[FieldTest]| {
        let mut conditions = db.ticket_conditions(store, filter, ShownTickets::Open, NOW);
        (db.ticket_source(filter, ShownTickets::Open, tests, None, &mut conditions), conditions)
    };
    for labels in [vec!["fifth"], vec!["fifth", "none"], vec![]] {
        let filter = if labels.is_empty() { TicketFilter::default() } else { labelled(LabelOperator::ContainsAny, &labels) };
        let text = |tests: &[FieldTest]| {
            let (source, conditions) = page(&filter, tests);
            page_sql::<Ticket>(&source, conditions, &first(20), None).as_str().to_owned()
        };
        let sorted = text(&[others.clone(), one.clone(), some.clone()]);
        assert_eq!(text(&[one.clone(), some.clone(), others.clone()]), sorted);
        let looks: Vec<_> = ["number_value < ", "number_value IN ", " NOT EXISTS"].iter().map(|look| sorted.find(look).unwrap()).collect();
        assert!(looks.is_sorted(), "{sorted}");
        if db.backend() != DbBackend::Sqlite {
            continue;
        }
        for (test, before) in [(&some, true), (&one, true), (&all, true), (&others, false)] {
            let (source, conditions) = page(&filter, &[some.clone(), test.clone()]);
            let plan = db.page_plan::<Ticket>(source, conditions, &first(20)).await.unwrap();
            let looks: Vec<_> = plan.iter().filter(|step| step.starts_with("SEARCH")).collect();
            let row = looks.iter().rposition(|step| step.starts_with("SEARCH tickets")).unwrap();
            let values = looks.iter().rposition(|step| step.starts_with("SEARCH v ")).unwrap();
            assert_eq!(values < row, before, "{test:?}: {plan:?}");
        }
    }
}
