//! Tests of the cost of a page, measured in the rows that its statement reads (PostgreSQL) or the steps that it takes (SQLite). A page
//! costs the same at any depth, except in the list of a contact's conversations. These tests fail if an index is missing.

use sea_orm::DbBackend;

use crate::{
    domain::{
        conversations::Conversation,
        custom_fields::Comparable,
        paging::{PageRequest, Position},
        ticket_field_filters::{FieldTest, Test},
        ticket_filters::{LabelFilter, LabelOperator, ShownTickets, TicketFilter},
        tickets::Ticket,
        time::Timestamp,
    },
    store::{
        entity::tickets,
        fixture::{Fixture, first},
        parameterised_sql::Sql,
        statement::pages::page_sql,
        tickets::bloom_filters::FieldBloomBits,
    },
};

const NOW: Timestamp = Timestamp::from_millis(10_000_000);
const TICKETS: i64 = 5000;

/// Creates closed tickets in five conversations. Every fifth ticket has the region `north`. The scores repeat from 0 to 99. Of each 25
/// tickets, five in a row are in the conversation with the label `l`.
pub(super) async fn shop() -> Fixture {
    let fixture = Fixture::alone().await;
    for conversation in ["c1", "c2", "c3", "c4"] {
        fixture.conversation(conversation, |_| {}).await;
    }
    fixture.label("c3", "l").await;
    let store = &fixture.store;
    let numbers = format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {TICKETS}) ");
    let marks = |field: &str, value| FieldBloomBits::of(&field.into(), [&value]);
    let north = marks("region", Comparable::Text("north".to_owned()));
    let (north, part) = (north.field_marks.bits(), north.text_marks.bits());
    let score = |score: i64| format!("WHEN {score} THEN {} ", marks("score", Comparable::Number(score as f64)).field_marks.bits());
    let scores: String = (0..100).map(score).collect();
    for insert in [
        format!(
            "INSERT INTO tickets (store_id, id, ticket_number, channel, contact_id, account_id, conversation_id, ticket_fields, opened_at, \
             closed_at, sort_at, created_at, updated_at, is_open, is_spam, is_follow_up, field_marks, text_marks, label_marks) \
             SELECT '{store}', 't' || i, CAST(i AS TEXT), 'line', 'k1', 'a1', 'c' || (i / 5 % 5), '{{}}', i, i, i, i, i, FALSE, FALSE, FALSE, \
             (CASE i % 5 WHEN 0 THEN {north} ELSE 0 END) | (CASE i % 100 {scores}END), \
             CASE i % 5 WHEN 0 THEN {part} ELSE 0 END, \
             (SELECT label_marks FROM conversations c WHERE c.store_id = '{store}' AND c.id = 'c' || (i / 5 % 5)) FROM n"
        ),
        format!(
            "INSERT INTO ticket_field_values (store_id, ticket_id, field_id, position, text_value, folded) \
             SELECT '{store}', 't' || i, 'region', 0, 'north', 'north' FROM n WHERE i % 5 = 0"
        ),
        format!(
            "INSERT INTO ticket_field_values (store_id, ticket_id, field_id, position, number_value) \
             SELECT '{store}', 't' || i, 'score', 0, i % 100 FROM n"
        ),
    ] {
        fixture.execute(&format!("{numbers}{insert}")).await.unwrap();
    }
    if fixture.db.backend() == DbBackend::Postgres {
        fixture.execute("ANALYZE tickets; ANALYZE ticket_field_values; ANALYZE conversation_labels").await.unwrap();
    }
    fixture
}

#[tokio::test]
async fn a_deep_page_costs_as_much_as_the_first() {
    let fixture = shop().await;
    let (db, store) = (&fixture.db, &fixture.store);
    let any = |texts: &[&str]| Test::AnyOf(texts.iter().map(|text| Comparable::Text((*text).to_owned())).collect());
    let field = |id: &str, test: Test| FieldTest { field_id: id.into(), test };
    let labelled = TicketFilter {
        labels: Some(LabelFilter { operator: LabelOperator::ContainsAny, label_ids: vec!["l".into()] }),
        ..TicketFilter::default()
    };
    // Each filter with the limit on the work of its first page: in steps on SQLite, in rows on PostgreSQL. Without the index of the list,
    // or without the Bloom filters of labels and values, a page would exceed this limit.
    for (filter, tests, most) in [
        (&TicketFilter::default(), vec![], [700, 30]),
        (&labelled, vec![], [1_600, 200]),
        (&TicketFilter::default(), vec![field("region", any(&["north"]))], [1_600, 200]),
        (&labelled, vec![field("region", Test::StartsWith("nor".to_owned())), field("score", Test::Below(50.0))], [10_000, 1_500]),
        (&labelled, vec![field("region", Test::Contains("ort".to_owned())), field("score", Test::Between(0.0, 19.0))], [16_000, 3_000]),
    ] {
        let visits = async |after: Option<i64>| {
            let after = after.map(|at| Position { at, id: format!("t{at}"), rank: None, as_of: None });
            let page = PageRequest { after, ..first(20) };
            let mut conditions = db.ticket_conditions(store, filter, ShownTickets::Closed, NOW);
            let source = db.ticket_source(filter, ShownTickets::Closed, &tests, None, &mut conditions);
            db.page_cost::<Ticket>(&source, conditions, &page).await
        };
        let (front, near, far) = (visits(None).await, visits(Some(TICKETS - 1000)).await, visits(Some(TICKETS - 3000)).await);
        let got = format!("{tests:?}: {front} on the first page, {near} at 1000, {far} at 3000");
        // On a page after a cursor SQLite compares each row with the cursor, which takes some more steps for each row.
        assert!(near <= front + front / 3 + 30 && far <= front + front / 3 + 30, "{got}");
        assert!(near.abs_diff(far) <= near / 10 + 30, "{got}");
        assert!(front < most[usize::from(db.backend() == DbBackend::Postgres)], "{got}");
        if db.backend() == DbBackend::Postgres && filter.labels.is_none() && tests.is_empty() {
            assert_eq!(front, 21, "{got}");
        }
    }
}

/// A ticket stores a Bloom filter of its field values, by which a search skips tickets without a look-up of their values. On SQLite, a
/// search for a range of numbers tests the bits of negative and of large numbers only if some ticket has such a number. This test sets
/// these bits in all tickets, although no ticket has such a number: the search must still skip tickets. Then one ticket gets such a number,
/// and the search must find it.
#[tokio::test]
async fn bloom_bits_of_absent_numbers_let_no_ticket_through() {
    let fixture = shop().await;
    let (db, store, filter) = (&fixture.db, &fixture.store, TicketFilter::default());
    let marks = |number: f64| FieldBloomBits::of(&"score".into(), [&Comparable::Number(number)]).field_marks.bits();
    fixture.execute(&format!("UPDATE tickets SET field_marks = field_marks | {} | {}", marks(-5.0), marks(5000.0))).await.unwrap();
    let asked = async |test: &Test| {
        let (tests, page) = ([FieldTest { field_id: "score".into(), test: test.clone() }], first(20));
        let narrowed = || {
            let mut conditions = db.ticket_conditions(store, &filter, ShownTickets::Closed, NOW);
            let source = db.ticket_source(&filter, ShownTickets::Closed, &tests, None, &mut conditions);
            (source, conditions)
        };
        let (source, conditions) = narrowed();
        let visits = db.page_cost::<Ticket>(&source, conditions, &page).await;
        let (source, conditions) = narrowed();
        let found = db.page_of::<Ticket>(&source, conditions, &page).await.unwrap().rows;
        (found.into_iter().map(|ticket| ticket.id.into_string()).collect::<Vec<_>>(), visits)
    };
    for (test, number, ticket) in [(Test::Below(1.0), -5, "t4001"), (Test::Above(98.0), 5000, "t4002")] {
        let (before, few) = asked(&test).await;
        let set = format!("UPDATE ticket_field_values SET number_value = {number} WHERE field_id = 'score' AND ticket_id = '{ticket}'");
        fixture.execute(&set).await.unwrap();
        let (after, many) = asked(&test).await;
        assert_eq!((before.len(), after.len()), (20, 20), "{test:?}");
        assert!(!before.iter().any(|id| id == ticket) && after.iter().any(|id| id == ticket), "{test:?}: {after:?}");
        assert!(db.backend() == DbBackend::Postgres || few + few / 4 < many, "{test:?}: {few} and {many}");
    }
}

/// If only three tickets in a list of thousands match, or no ticket matches, a page is read without a scan of the list.
#[tokio::test]
async fn a_condition_that_few_tickets_fulfil_is_read_from_its_index() {
    let fixture = shop().await;
    let (db, store) = (&fixture.db, &fixture.store);
    fixture.conversation("few", |_| {}).await;
    fixture.label("few", "rare").await;
    for id in ["few1", "few2", "few3"] {
        let few = |row: &mut tickets::Model| {
            row.conversation_id = "few".into();
            row.is_open = false;
            row.closed_at = Some(9);
            row.assignee_user_id = Some("u1".into());
        };
        fixture.ticket(id, few).await;
    }
    let filter = |operator, ids: &[&str]| TicketFilter {
        labels: Some(LabelFilter { operator, label_ids: ids.iter().map(|id| (*id).into()).collect() }),
        ..TicketFilter::default()
    };
    let assigned =
        |ids: &[&str]| TicketFilter { assignee_user_ids: ids.iter().map(|id| (*id).into()).collect(), ..TicketFilter::default() };
    let sqlite = db.backend() == DbBackend::Sqlite;
    for (filter, shown, starts, found) in [
        (assigned(&["u1", "u2"]), ShownTickets::Closed, true, 3),
        (assigned(&["u2", "u3"]), ShownTickets::Open, true, 0),
        (assigned(&["u1"]), ShownTickets::Closed, false, 3),
        (filter(LabelOperator::ContainsAny, &["rare"]), ShownTickets::Closed, true, 3),
        (filter(LabelOperator::ContainsAny, &["rare"]), ShownTickets::All, true, 3),
        // On SQLite the open tickets of a label already form a list of their own (table `labelled_tickets`), so no other index is chosen.
        (filter(LabelOperator::ContainsAny, &["rare"]), ShownTickets::Open, !sqlite, 0),
        (filter(LabelOperator::ContainsAny, &["none"]), ShownTickets::Closed, true, 0),
        (filter(LabelOperator::ContainsAll, &["rare", "l"]), ShownTickets::Closed, true, 0),
        (filter(LabelOperator::ContainsAny, &["rare", "l"]), ShownTickets::Closed, false, 20),
        (filter(LabelOperator::DoesNotContainAny, &["rare"]), ShownTickets::Closed, false, 20),
    ] {
        let page = PageRequest { count: false, ..first(20) };
        let rows = db.tickets(store, &filter, shown, &[], NOW, &page).await.unwrap().rows;
        assert_eq!(rows.len(), found, "{filter:?}");
        let driving = db.find_driving_condition(store, &filter, shown, &[], db.few_tickets()).await.unwrap();
        // On PostgreSQL, `Db::find_driving_condition` returns no condition for a filter by assignee: the statistics of PostgreSQL's planner
        // are enough.
        let starts = starts && (sqlite || filter.labels.is_some());
        assert_eq!(driving.is_some(), starts, "{filter:?}");
        let mut conditions = db.ticket_conditions(store, &filter, shown, NOW);
        let source = db.ticket_source(&filter, shown, &[], driving.as_ref(), &mut conditions);
        let visits = db.page_cost::<Ticket>(&source, conditions, &page).await;
        assert!(visits < 300 || found == 20 || !sqlite && !starts, "{filter:?}: {visits}");
    }
}

/// A page of a contact's conversations reads and sorts the conversations of that contact only.
#[tokio::test]
async fn a_contact_s_conversations_are_listed_without_reading_others() {
    let fixture = Fixture::alone().await;
    let (db, store) = (&fixture.db, &fixture.store);
    let conversations = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
         INSERT INTO conversations (store_id, id, channel, account_id, contact_id, display_name, reference_id, label_ids, label_marks, \
         is_spam, unread_count, message_count, sort_at, created_at, updated_at) \
         SELECT '{store}', 'n' || i, 'widget', 'a1', CASE WHEN i % 200 = 0 THEN 'few' ELSE 'many' END, 'Ada', 'n' || i, '[]', 0, \
         FALSE, 0, 0, i % 7, i, i FROM n"
    );
    for contact in ["few", "many"] {
        fixture.contact(contact, 0).await;
    }
    fixture.execute(&conversations).await.unwrap();
    if db.backend() == DbBackend::Postgres {
        fixture.execute("ANALYZE conversations").await.unwrap();
    }
    let (mut page, mut listed) = (first(20), Vec::new());
    loop {
        let visits =
            db.page_cost::<Conversation>(&"conversations".into(), crate::store::Db::conversations_of(store, &"few".into()), &page).await;
        assert!(visits < 2_500, "{visits}");
        let read = db.conversations_of_contact(store, &"few".into(), &page).await.unwrap();
        listed.extend(read.rows.iter().map(|row| (row.sort_at, row.id.to_string())));
        match read.next {
            Some(next) => page.after = Some(next),
            None => break,
        }
    }
    let mut right: Vec<_> = (1..=50).map(|i| i * 200).map(|i| (Timestamp::from_millis(i % 7), format!("n{i}"))).collect();
    right.sort_by(|one, other| other.cmp(one));
    assert_eq!(listed, right);
}

/// Rows are looked up by the primary key even if PostgreSQL's statistics are missing (before the first ANALYZE), or misleading (most stores
/// are small).
#[tokio::test]
async fn rows_are_looked_up_by_primary_key_with_any_statistics() {
    let fixture = Fixture::alone().await;
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)";
    let contacts = |store: &str| {
        format!(
            "{numbers} INSERT INTO contacts (store_id, id, full_name, first_name, created_at, updated_at) \
             SELECT {store}, 'c' || i, 'Ada', 'Ada', i, i FROM n"
        )
    };
    let stores =
        "INSERT INTO stores (id, name, currency, reopen_window_hours, created_at) SELECT 'small' || i, 'Shop', 'THB', 24, 0 FROM n";
    let ids: Vec<String> = (0..100).map(|i| format!("c{}", i * 90 + 1)).collect();
    let visits = async || {
        let sql = Sql::by_ids(fixture.db.backend(), &fixture.store, ("id, full_name", "contacts"), ids.iter().map(String::as_str));
        fixture.db.query_cost(sql).await
    };
    let most = if fixture.db.backend() == DbBackend::Postgres { 300 } else { 2_000 };
    let large = contacts(&format!("'{}'", fixture.store));
    fixture.execute(&large).await.unwrap();
    let unknown = visits().await;
    fixture.execute(&format!("DELETE FROM contacts WHERE id LIKE 'c%'; {numbers} {stores}")).await.unwrap();
    fixture.execute(&contacts("'small' || i")).await.unwrap();
    if fixture.db.backend() == DbBackend::Postgres {
        fixture.execute("ANALYZE contacts").await.unwrap();
    }
    fixture.execute(&large).await.unwrap();
    let skewed = visits().await;
    assert!(unknown < most && skewed < most, "{unknown} and {skewed}");
}

/// The statement of a total reads its list once, and looks field values up only for tickets that pass the Bloom filters. If few tickets of
/// a long list fulfil a condition, the statement reads only these tickets.
#[tokio::test]
async fn a_total_reads_no_more_rows_than_its_list() {
    let fixture = shop().await;
    let (db, store) = (&fixture.db, &fixture.store);
    let postgres = db.backend() == DbBackend::Postgres;
    let field = |id: &str, test: Test| FieldTest { field_id: id.into(), test };
    let labelled = TicketFilter {
        labels: Some(LabelFilter { operator: LabelOperator::ContainsAny, label_ids: vec!["l".into()] }),
        ..TicketFilter::default()
    };
    let tests = [field("region", Test::StartsWith("nor".to_owned())), field("score", Test::Between(0.0, 19.0))];
    let counted = PageRequest { count: true, ..first(20) };
    let total = db.tickets(store, &labelled, ShownTickets::Closed, &tests, NOW, &counted).await.unwrap().total;
    assert_eq!(total, Some(50), "one of a hundred");
    let of_list = [200, 1_000][usize::from(postgres)];
    assert_eq!([0, 5_000].map(|listed| db.few_tickets_for_total(listed)), [of_list; 2]);
    assert_eq!(
        [200_000, 5_000_000].map(|listed| db.few_tickets_for_total(listed)),
        if postgres { [16_000, 256_000] } else { [3_200, 51_200] }
    );
    // The list is counted twice: with its real length, and as if it were much longer. The tickets that fulfil a condition count as few only
    // in the longer list.
    let rows = TICKETS as u64;
    for (listed, starts, most) in [(5_000, false, [8 * rows, rows + 200]), (200_000, true, [7 * rows, 4 * rows / 5])] {
        let driving = match starts {
            true => {
                db.find_driving_condition(store, &labelled, ShownTickets::Closed, &tests, db.few_tickets_for_total(listed)).await.unwrap()
            }
            false => None,
        };
        assert_eq!(driving.is_some(), starts);
        let conditions = db.ticket_conditions(store, &labelled, ShownTickets::Closed, NOW);
        let sql = db.filtered_total_sql(&labelled, ShownTickets::Closed, &tests, driving.as_ref(), conditions);
        assert_eq!(db.count(sql.clone()).await.unwrap(), 50);
        let query_cost = db.query_cost(sql).await;
        assert!(query_cost < most[usize::from(postgres)], "{query_cost} where {listed} are listed");
    }
    // PostgreSQL looks field values up row by row only if two Bloom filters narrow the list, here those of a label and of a text. Otherwise
    // it joins the list with the field values.
    let north = field("region", Test::AnyOf(vec![Comparable::Text("north".to_owned())]));
    let below = field("score", Test::Below(50.0));
    for (filter, tests, fenced) in [
        (&labelled, vec![north.clone()], true),
        (&labelled, vec![below.clone()], false),
        (&TicketFilter::default(), vec![north.clone()], false),
        (&TicketFilter::default(), vec![north, below], false),
    ] {
        let conditions = db.ticket_conditions(store, filter, ShownTickets::Closed, NOW);
        let sql = db.filtered_total_sql(filter, ShownTickets::Closed, &tests, None, conditions);
        assert_eq!(sql.as_str().contains("OFFSET"), fenced && postgres, "{tests:?}");
    }
}

/// An assignee's list is short. If more tickets fulfil a condition than the list has, the statement of the total must read the list, and
/// not the index of the condition.
#[tokio::test]
async fn a_total_reads_a_short_assignee_list_instead_of_a_condition_s_index() {
    let fixture = shop().await;
    let (db, store) = (&fixture.db, &fixture.store);
    fixture.execute("UPDATE tickets SET assignee_user_id = 'u1' WHERE sort_at < 3000").await.unwrap();
    if db.backend() == DbBackend::Postgres {
        fixture.execute("ANALYZE tickets").await.unwrap();
    }
    let filter = TicketFilter {
        assignee_user_ids: vec!["u1".into()],
        labels: Some(LabelFilter { operator: LabelOperator::ContainsAny, label_ids: vec!["l".into()] }),
        ..TicketFilter::default()
    };
    let tests = [FieldTest { field_id: "score".into(), test: Test::Between(17.0, 18.0) }];
    let counted = PageRequest { count: true, ..first(20) };
    let page = db.tickets(store, &filter, ShownTickets::Closed, &tests, NOW, &counted).await.unwrap();
    // The tickets whose numbers end in 17 and 18, two of each hundred, are in the conversation with the label.
    assert_eq!((page.rows.len(), page.total), (20, Some(60)));
    fixture.execute("UPDATE totals SET value = 200000 WHERE name = 'tickets.closed'").await.unwrap();
    let whole = TicketFilter { assignee_user_ids: vec![], ..filter.clone() };
    assert!(db.find_driving_condition_of_total(store, &whole, ShownTickets::Closed, &tests, NOW).await.unwrap().is_some());
    assert!(db.find_driving_condition_of_total(store, &filter, ShownTickets::Closed, &tests, NOW).await.unwrap().is_none());
    let driving = db.find_driving_condition(store, &filter, ShownTickets::Closed, &tests, db.few_tickets()).await.unwrap();
    let mut conditions = db.ticket_conditions(store, &filter, ShownTickets::Closed, NOW);
    let driving = driving.expect("a hundred have such a score");
    let source = db.ticket_source(&filter, ShownTickets::Closed, &tests, Some(&driving), &mut conditions);
    let visits = db.page_cost::<Ticket>(&source, conditions, &first(20)).await;
    assert!(visits < [10_000, 1_000][usize::from(db.backend() == DbBackend::Postgres)], "{visits}");
}

#[tokio::test]
async fn the_query_of_a_total_omits_the_optimisation_fences_of_pages() {
    let fixture = Fixture::new().await;
    let (filter, tests) = (TicketFilter::default(), [FieldTest { field_id: "score".into(), test: Test::Below(50.0) }]);
    let conditions = fixture.db.ticket_conditions(&fixture.store, &filter, ShownTickets::All, NOW);
    let mut of_page = conditions.clone();
    let source = fixture.db.ticket_source(&filter, ShownTickets::All, &tests, None, &mut of_page);
    let page = page_sql::<Ticket>(&source, of_page, &first(20), None);
    let (fences, postgres) = (page.as_str().matches(" OFFSET 0)").count(), fixture.db.backend() == DbBackend::Postgres);
    assert_eq!(fences, usize::from(postgres), "{}", page.as_str());
    assert!(page.as_str().contains(" AND +v.number_value < "), "{}", page.as_str());
    let total = fixture.db.filtered_total_sql(&filter, ShownTickets::All, &tests, None, conditions);
    assert!(!total.as_str().contains("OFFSET"));
    assert_eq!(total.as_str().contains("+v.number_value"), !postgres, "{}", total.as_str());
}
