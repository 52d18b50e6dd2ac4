//! Tests of the rows that lists return, and of the query plans of their statements.

use sea_orm::DbBackend;

use crate::{
    domain::{
        contacts::{Contact, ContactFilter},
        conversations::Conversation,
        custom_fields::Comparable,
        messages::{Comment, Message},
        paging::{PageRequest, Position},
        stores_and_accounts::Account,
        ticket_field_filters::{FieldTest, Test},
        ticket_filters::{LabelFilter, LabelOperator, OpenedAt, ShownTickets, TicketFilter},
        tickets::{Ticket, TicketWindow},
        time::Timestamp,
        users_teams_labels::{Label, Team},
    },
    store::{
        fixture::{Fixture, first},
        messages::message_conditions,
        parameterised_sql::{RowBound, Sql},
        tickets::driving_index::DrivingCondition,
    },
};

const NOW: Timestamp = Timestamp::from_millis(10_000_000);

async fn listed(fixture: &Fixture, filter: &TicketFilter, shown: ShownTickets, tests: &[FieldTest]) -> String {
    let page = fixture.db.tickets(&fixture.store, filter, shown, tests, NOW, &first(100)).await.unwrap();
    assert_eq!(page.total, Some(page.rows.len() as u64));
    let ids: Vec<_> = page.rows.iter().map(|ticket| ticket.id.as_str()).collect();
    ids.join(" ")
}

fn text(text: &str) -> Comparable {
    Comparable::Text(text.into())
}

#[tokio::test]
async fn a_pagination_returns_each_ticket_once_and_breaks_ties_by_id() {
    let fixture = Fixture::new().await;
    for (id, sort_at) in [("1", 5), ("2", 5), ("3", 5), ("4", 4), ("5", 6), ("B", 5), ("a", 5)] {
        fixture.ticket(id, |row| row.sort_at = sort_at).await;
    }
    for size in 1..=8 {
        let mut page = first(size);
        let mut walked = Vec::new();
        loop {
            let read = fixture.db.tickets(&fixture.store, &TicketFilter::default(), ShownTickets::Open, &[], NOW, &page).await.unwrap();
            assert_eq!(read.total, Some(7));
            assert!(!read.rows.is_empty());
            walked.extend(read.rows.into_iter().map(|ticket| ticket.id.into_string()));
            match read.next {
                Some(next) => page.after = Some(next),
                None => break,
            }
        }
        assert_eq!(walked.join(""), "5aB3214", "pages of {size}");
    }
}

#[tokio::test]
async fn tickets_are_filtered_by_state_and_properties() {
    let fixture = Fixture::new().await;
    let now = NOW.millis();
    fixture.ticket("open", |_| {}).await;
    fixture.ticket("snoozed", |row| row.snoozed_until = Some(now + 1)).await;
    fixture.ticket("woken", |row| row.snoozed_until = Some(now)).await;
    fixture.ticket("spam", |row| row.is_spam = true).await;
    fixture
        .ticket("closed", |row| {
            row.is_open = false;
            row.resolution_status = Some("ai_full_resolution".into());
            row.handled_by = Some("u2".into());
        })
        .await;
    fixture
        .ticket("taken", |row| {
            row.assignee_user_id = Some("u1".into());
            row.is_follow_up = true;
            row.waiting_since = Some(now - 120_000);
            row.opened_at = 7;
        })
        .await;
    let all = TicketFilter::default();
    for (filter, shown, expected) in [
        (all.clone(), ShownTickets::Open, "woken taken open"),
        (all.clone(), ShownTickets::Closed, "closed"),
        (all.clone(), ShownTickets::All, "woken taken snoozed open closed"),
        (TicketFilter { is_spam: true, ..all.clone() }, ShownTickets::All, "spam"),
        (TicketFilter { conversation_id: Some("cclosed".into()), ..all.clone() }, ShownTickets::All, "closed"),
        (TicketFilter { conversation_id: Some("cclosed".into()), ..all.clone() }, ShownTickets::Open, ""),
        (TicketFilter { conversation_id: Some("\0".into()), ..all.clone() }, ShownTickets::All, ""),
        (TicketFilter { account_ids: vec!["gone".into(), "a1".into()], ..all.clone() }, ShownTickets::Closed, "closed"),
        (TicketFilter { account_ids: vec!["gone".into()], ..all.clone() }, ShownTickets::All, ""),
        (TicketFilter { assignee_user_ids: vec!["u1".into()], ..all.clone() }, ShownTickets::Open, "taken"),
        (TicketFilter { assignee_user_ids: vec!["u1".into(), "u2".into(), "u3".into()], ..all.clone() }, ShownTickets::All, "taken"),
        (TicketFilter { unassigned: true, ..all.clone() }, ShownTickets::Open, "woken open"),
        (TicketFilter { handled_by_user_ids: vec!["u2".into()], ..all.clone() }, ShownTickets::All, "closed"),
        (TicketFilter { is_follow_up: Some(true), ..all.clone() }, ShownTickets::All, "taken"),
        (TicketFilter { is_follow_up: Some(false), ..all.clone() }, ShownTickets::Open, "woken open"),
        (TicketFilter { resolution_statuses: vec!["none".into()], ..all.clone() }, ShownTickets::All, "woken taken snoozed open"),
        (TicketFilter { resolution_statuses: vec!["ai_full_resolution".into()], ..all.clone() }, ShownTickets::All, "closed"),
        (
            TicketFilter { resolution_statuses: vec!["none".into(), "ai_full_resolution".into()], ..all.clone() },
            ShownTickets::All,
            "woken taken snoozed open closed",
        ),
        (TicketFilter { waiting_minutes: Some(2), ..all.clone() }, ShownTickets::All, "taken"),
        (TicketFilter { waiting_minutes: Some(3), ..all.clone() }, ShownTickets::All, ""),
        (TicketFilter { waiting_minutes: Some(i64::MAX), ..all.clone() }, ShownTickets::All, ""),
        (TicketFilter { opened_at: Some(OpenedAt::After(Timestamp::from_millis(0))), ..all.clone() }, ShownTickets::All, "taken"),
        (TicketFilter { opened_at: Some(OpenedAt::Before(Timestamp::from_millis(7))), ..all.clone() }, ShownTickets::Closed, "closed"),
        (
            TicketFilter { opened_at: Some(OpenedAt::Between(Timestamp::from_millis(7), Timestamp::from_millis(7))), ..all },
            ShownTickets::All,
            "taken",
        ),
    ] {
        assert_eq!(listed(&fixture, &filter, shown, &[]).await, expected, "{filter:?} {shown:?}");
    }
}

#[tokio::test]
async fn label_filters_use_the_labels_of_the_ticket_s_conversation() {
    let fixture = Fixture::new().await;
    for id in ["1", "2", "3"] {
        fixture.ticket(id, |_| {}).await;
    }
    for (conversation, label) in [("c1", "x"), ("c2", "x"), ("c2", "y")] {
        fixture.label(conversation, label).await;
    }
    use LabelOperator::*;
    for (operator, labels, expected) in [
        (ContainsAny, vec!["x"], "2 1"),
        (ContainsAny, vec!["y", "z"], "2"),
        (ContainsAny, vec!["x", "y", "z"], "2 1"),
        (ContainsAll, vec!["x", "y"], "2"),
        (ContainsAll, vec!["x", "x"], "2 1"),
        (ContainsAll, vec!["x", "z"], ""),
        (DoesNotContainAny, vec!["y"], "3 1"),
        (DoesNotContainAny, vec!["x", "y", "z"], "3"),
    ] {
        let label_ids = labels.iter().map(|label| (*label).into()).collect();
        let filter = TicketFilter { labels: Some(LabelFilter { operator, label_ids }), ..Default::default() };
        assert_eq!(listed(&fixture, &filter, ShownTickets::Open, &[]).await, expected, "{operator:?} {labels:?}");
    }
}

#[tokio::test]
async fn field_filters_match_stored_values_and_negative_ones_match_unset_fields() {
    let fixture = Fixture::new().await;
    for id in ["1", "2", "3", "4"] {
        fixture.ticket(id, |_| {}).await;
    }
    fixture.values("1", "f", [text("Größe 100%")]).await;
    fixture.values("2", "f", [text("_größe")]).await;
    fixture.values("3", "f", [text("a"), text("b"), text("c")]).await;
    fixture.values("1", "n", [Comparable::Number(1.0)]).await;
    fixture.values("2", "n", [Comparable::Number(2.5)]).await;
    fixture.values("3", "n", [Comparable::Number(-3.0)]).await;
    fixture.values("3", "last", [text("\u{10ffff}")]).await;
    fixture.values("2", "last", [text("\u{1}a")]).await;
    fixture.values("4", "last", [text("qz\u{10ffff}c")]).await;
    // Values of another field, which must not match.
    fixture.values("4", "other", [text("a"), Comparable::Number(1.0)]).await;
    let numbers = |numbers: &[f64]| numbers.iter().copied().map(Comparable::Number).collect::<Vec<_>>();
    // Returns `many` consecutive numbers, in descending order from 15.
    let falling = |many: i32| numbers(&(0..many).map(|i| f64::from(15 - i)).collect::<Vec<_>>());
    for (field, test, expected) in [
        ("f", Test::Present, "3 2 1"),
        ("f", Test::Absent, "4"),
        ("f", Test::AnyOf(vec![text("_größe")]), "2"),
        ("f", Test::AnyOf(vec![text("_GRÖSSE")]), ""),
        ("f", Test::AnyOf(vec![text("a"), text("z"), text("_größe")]), "3 2"),
        ("f", Test::AnyOf(vec![text("a"), text("b"), text("c")]), "3"),
        ("f", Test::NoneOf(vec![text("a")]), "4 2 1"),
        ("f", Test::NoneOf(vec![text("a"), text("_größe"), text("Größe 100%")]), "4"),
        ("f", Test::AllOf(vec![text("a"), text("c")]), "3"),
        ("f", Test::AllOf(vec![text("a"), text("b"), text("c")]), "3"),
        ("f", Test::AllOf(vec![text("a"), text("z")]), ""),
        ("f", Test::StartsWith("grösse".into()), "1"),
        ("f", Test::StartsWith("_".into()), "2"),
        ("f", Test::StartsWith("%".into()), ""),
        // U+0000 in a condition is replaced by a random text that no stored text contains. The results do not depend on where that random
        // text sorts.
        ("last", Test::AnyOf(vec![text("\0a")]), ""),
        ("last", Test::NoneOf(vec![text("\0a")]), "4 3 2 1"),
        ("last", Test::Contains("\0a".into()), ""),
        ("last", Test::StartsWith("\0".into()), ""),
        ("last", Test::Contains("\u{1}a".into()), "2"),
        ("last", Test::AnyOf(vec![text("\0b"), text("\u{1}a"), text("z")]), "2"),
        ("last", Test::NoneOf(vec![text("\0b"), text("\u{1}a"), text("z")]), "4 3 1"),
        ("last", Test::StartsWith("qz".into()), "4"),
        ("last", Test::StartsWith("qz\u{10ffff}".into()), "4"),
        ("last", Test::StartsWith("qy\u{10ffff}".into()), ""),
        ("last", Test::StartsWith("\u{10ffff}".into()), "3"),
        ("last", Test::StartsWith("q\u{d7ff}".into()), ""),
        ("f", Test::Contains("grösse".into()), "2 1"),
        ("f", Test::Contains("0%".into()), "1"),
        ("f", Test::Contains("_".into()), "2"),
        ("f", Test::Contains("\0".into()), ""),
        ("n", Test::AnyOf(numbers(&[1.0])), "1"),
        ("n", Test::AnyOf(numbers(&[1.0, 2.5, 7.0])), "2 1"),
        ("n", Test::AnyOf(falling(20)), "3 1"),
        ("n", Test::AnyOf(falling(21)), "3 1"),
        ("n", Test::AnyOf(numbers(&[f64::INFINITY, -0.0, f64::NEG_INFINITY, 0.0])), ""),
        ("n", Test::NoneOf(numbers(&[1.0])), "4 3 2"),
        ("n", Test::NoneOf(numbers(&[9.0, 2.5, -3.0, 4.0])), "4 1"),
        ("n", Test::AllOf(numbers(&[2.5, 1.0, -3.0])), ""),
        ("n", Test::AllOf(numbers(&[1.0])), "1"),
        ("n", Test::Above(1.0), "2"),
        ("n", Test::Below(1.0), "3"),
        ("n", Test::Between(-3.0, 1.0), "3 1"),
        ("gone", Test::Absent, "4 3 2 1"),
    ] {
        let tests = [FieldTest { field_id: field.into(), test }];
        assert_eq!(listed(&fixture, &TicketFilter::default(), ShownTickets::Open, &tests).await, expected, "{tests:?}");
    }
}

/// Returns pseudo-random letters, which PostgreSQL's compression does not shorten.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + u8::try_from((state >> 33) % 26).unwrap())
    };
    (0..length).map(|_| letter()).collect()
}

#[tokio::test]
async fn a_long_text_value_is_compared_beyond_its_indexed_prefix() {
    let fixture = Fixture::new().await;
    let long = noise(20_000);
    // An index holds only the first 200 characters of a text. These texts agree in the first 200 characters, differ only in the 200th, or
    // have only 199 characters.
    let values = [long.clone(), format!("{long}x"), long[..200].to_owned(), format!("{}É", &long[..199]), long[..199].to_owned()];
    for (i, value) in values.iter().enumerate() {
        let id = (i + 1).to_string();
        fixture.ticket(&id, |_| {}).await;
        fixture.values(&id, "f", [text(value)]).await;
    }
    for (test, expected) in [
        (Test::AnyOf(vec![text(&long)]), "1"),
        (Test::AnyOf(vec![text(&long[..200])]), "3"),
        (Test::AnyOf(vec![text(&long[..199])]), "5"),
        (Test::AnyOf(vec![text(&long[..201])]), ""),
        (Test::AnyOf(vec![text(&values[1]), text(&values[4]), text(&values[3])]), "5 4 2"),
        (Test::NoneOf(vec![text(&long), text(&long[..199])]), "4 3 2"),
        (Test::AllOf(vec![text(&long)]), "1"),
        (Test::StartsWith(long.clone()), "2 1"),
        (Test::StartsWith(values[1].clone()), "2"),
        (Test::StartsWith(long[..201].to_owned()), "2 1"),
        (Test::StartsWith(long[..200].to_owned()), "3 2 1"),
        (Test::StartsWith(format!("{}é", &long[..199])), "4"),
        (Test::StartsWith(long[..199].to_owned()), "5 4 3 2 1"),
        (Test::Contains(long[19_000..].to_owned()), "2 1"),
    ] {
        let tests = [FieldTest { field_id: "f".into(), test }];
        assert_eq!(listed(&fixture, &TicketFilter::default(), ShownTickets::Open, &tests).await, expected, "{tests:?}");
    }
}

#[tokio::test]
async fn a_rare_value_is_found_in_an_index() {
    let fixture = Fixture::new().await;
    if fixture.db.backend() != DbBackend::Sqlite {
        return;
    }
    for (test, index) in [
        (Test::AnyOf(vec![text("a")]), "COVERING INDEX ticket_field_values_by_text (store_id=? AND field_id=? AND <expr>=?)"),
        (Test::AnyOf(vec![text(&noise(300))]), "INDEX ticket_field_values_by_text (store_id=? AND field_id=? AND <expr>=?)"),
        (Test::StartsWith("a".into()), "COVERING INDEX ticket_field_values_by_fold (store_id=? AND field_id=? AND <expr>>? AND <expr><?)"),
        (Test::StartsWith(noise(300)), "INDEX ticket_field_values_by_fold (store_id=? AND field_id=? AND <expr>>? AND <expr><?)"),
        (Test::Above(1.0), "COVERING INDEX ticket_field_values_by_number (store_id=? AND field_id=? AND number_value>?)"),
    ] {
        let test = FieldTest { field_id: "f".into(), test };
        let mut conditions = Sql::of(&fixture.store, "store_id = $1");
        let table = fixture.db.push_driving_condition(&mut conditions, &DrivingCondition::Value(&test), ShownTickets::Open);
        let plan = fixture.db.page_plan::<Ticket>(table, conditions, &first(20)).await.unwrap();
        assert!(plan.contains(&format!("SEARCH v USING {index}")), "{test:?}: {plan:?}");
    }
}

#[tokio::test]
async fn many_filters_fit_one_statement() {
    let fixture = Fixture::new().await;
    fixture.ticket("1", |_| {}).await;
    let values: Vec<_> = (0..100).map(|i| text(&i.to_string())).collect();
    let tests: Vec<_> = (0..10)
        .map(|i| FieldTest {
            field_id: format!("f{i}").into(),
            test: if i % 2 == 0 { Test::NoneOf(values.clone()) } else { Test::AllOf(values.clone()) },
        })
        .collect();
    let ids: Vec<_> = (0..1000).map(|i| format!("a{i}")).collect();
    let filter = TicketFilter {
        account_ids: ids.iter().map(|id| id.as_str().into()).collect(),
        assignee_user_ids: ids.iter().map(|id| id.as_str().into()).collect(),
        handled_by_user_ids: ids.iter().map(|id| id.as_str().into()).collect(),
        ..Default::default()
    };
    assert_eq!(listed(&fixture, &filter, ShownTickets::Open, &tests).await, "");
}

#[tokio::test]
async fn a_ticket_s_window_reaches_from_the_former_close_to_its_own() {
    let fixture = Fixture::new().await;
    let former = |opened_at, closed_at: Option<i64>| {
        move |row: &mut crate::store::entity::tickets::Model| {
            row.conversation_id = "c0".into();
            row.is_open = closed_at.is_none();
            (row.opened_at, row.closed_at) = (opened_at, closed_at);
        }
    };
    fixture.ticket("1", former(10, Some(20))).await;
    // The tickets `2` and `3` open in the same millisecond: the id decides which comes first.
    fixture.ticket("2", former(30, Some(40))).await;
    fixture.ticket("3", former(30, Some(50))).await;
    fixture.ticket("4", former(60, None)).await;
    for sent_at in [5, 20, 21, 40, 41, 50, 51, 99] {
        fixture.message(&format!("m{sent_at:02}"), "c0", sent_at, |_| {}).await;
    }
    for (ticket, expected) in [("1", "m20 m05"), ("2", "m40 m21"), ("3", "m50 m41"), ("4", "m99 m51")] {
        let window = fixture.db.ticket_window(&fixture.store, &ticket.into()).await.unwrap().unwrap();
        let mut page = PageRequest { size: 1, after: None, count: true };
        let mut walked = Vec::new();
        loop {
            let read = fixture.db.messages(&fixture.store, &window, &page).await.unwrap();
            assert_eq!(read.total, Some(2));
            walked.extend(read.rows.into_iter().map(|message| message.id.into_string()));
            let Some(next) = read.next else { break };
            page.after = Some(next);
        }
        assert_eq!(walked.join(" "), expected, "{ticket}");
    }
    assert_eq!(fixture.db.ticket_window(&fixture.store, &"5".into()).await.unwrap(), None);
}

#[tokio::test]
async fn contacts_are_filtered_by_update_time() {
    let fixture = Fixture::new().await;
    for (id, updated_at) in [("k2", 5), ("k3", 7)] {
        fixture.contact(id, updated_at).await;
    }
    let at = |millis| Some(Timestamp::from_millis(millis));
    let all = ContactFilter::default();
    for (filter, expected) in [
        (all.clone(), "k3 k2 k1"),
        (ContactFilter { updated_after: at(5), ..all.clone() }, "k3 k2"),
        (ContactFilter { updated_before: at(7), ..all }, "k2 k1"),
    ] {
        let mut page = PageRequest { size: 2, after: None, count: false };
        let mut walked = Vec::new();
        loop {
            let read = fixture.db.contacts(&fixture.store, &filter, &page).await.unwrap();
            walked.extend(read.rows.into_iter().map(|contact: Contact| contact.id.into_string()));
            let Some(next) = read.next else { break };
            page.after = Some(next);
        }
        assert_eq!(walked.join(" "), expected, "{filter:?}");
    }
}

#[tokio::test]
async fn plain_lists_are_read_in_the_order_of_an_index_at_any_depth() {
    let fixture = Fixture::new().await;
    if fixture.db.backend() != DbBackend::Sqlite {
        return;
    }
    let deep = PageRequest { after: Some(Position { at: 5, id: "x".into(), rank: None, as_of: None }), ..first(20) };
    let (db, store) = (&fixture.db, &fixture.store);
    let all = TicketFilter::default();
    let one = TicketFilter { assignee_user_ids: vec!["u".into()], ..all.clone() };
    let label =
        TicketFilter { labels: Some(LabelFilter { operator: LabelOperator::ContainsAny, label_ids: vec!["l".into()] }), ..all.clone() };
    let tests = [FieldTest { field_id: "f".into(), test: Test::AnyOf(vec![text("a")]) }];
    for (filter, shown, tests, index) in [
        (&all, ShownTickets::Open, &[][..], "tickets_by_state (store_id=? AND is_open=? AND is_spam=?"),
        (&all, ShownTickets::Closed, &[], "tickets_by_state (store_id=? AND is_open=? AND is_spam=?"),
        (&all, ShownTickets::All, &[], "tickets_by_message (store_id=? AND is_spam=?"),
        (&one, ShownTickets::All, &[], "tickets_by_assignee (store_id=? AND assignee_user_id=?"),
        (&label, ShownTickets::Closed, &[], "tickets_by_state (store_id=? AND is_open=? AND is_spam=?"),
        (&label, ShownTickets::All, &[], "tickets_by_message (store_id=? AND is_spam=?"),
        (&all, ShownTickets::Open, &tests, "tickets_by_state (store_id=? AND is_open=? AND is_spam=?"),
    ] {
        for page in [&first(20), &deep] {
            let mut conditions = db.ticket_conditions(store, filter, shown, NOW);
            let source = db.ticket_source(filter, shown, tests, None, &mut conditions);
            let plan = db.page_plan::<Ticket>(source, conditions, page).await.unwrap();
            let keyset = if page.after.is_some() { " AND (sort_at,id)<(?,?))" } else { ")" };
            // Bloom filter bits in the index show that most tickets lack the label or value. A covering index contains these bits, so such
            // tickets are skipped without reading the table.
            let covering = if filter.labels.is_some() || !tests.is_empty() { "COVERING " } else { "" };
            assert_eq!(plan.first(), Some(&format!("SEARCH tickets USING {covering}INDEX {index}{keyset}")), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("USE TEMP B-TREE")), "{plan:?}");
        }
    }
    for page in [&first(20), &deep] {
        let keyset = |at: &str, behind: &str| if page.after.is_some() { format!(" AND ({at},id){behind}(?,?))") } else { ")".to_owned() };
        let in_store = |more: &str| Sql::of(store, &format!("store_id = $1{more}"));
        let plans = [
            (
                db.page_plan::<Contact>("contacts", in_store(" AND updated_at >= 3"), page).await.unwrap(),
                format!("contacts USING INDEX contacts_by_update (store_id=? AND updated_at>?{}", keyset("updated_at", "<")),
            ),
            (
                db.page_plan::<Label>("labels", in_store(""), page).await.unwrap(),
                format!("labels USING INDEX labels_by_update (store_id=?{}", keyset("updated_at", "<")),
            ),
            (
                db.page_plan::<Team>("teams", in_store(""), page).await.unwrap(),
                format!("teams USING INDEX teams_by_age (store_id=?{}", keyset("created_at", ">")),
            ),
            (
                db.page_plan::<Account>("accounts", in_store(" AND status <> 'x'"), page).await.unwrap(),
                format!("accounts USING INDEX accounts_by_age (store_id=?{}", keyset("created_at", ">")),
            ),
            (
                db.page_plan::<Comment>("comments", in_store(" AND conversation_id = 'c'"), page).await.unwrap(),
                format!("comments USING INDEX comments_by_conversation (store_id=? AND conversation_id=?{}", keyset("sent_at", "<")),
            ),
        ];
        for (plan, index) in plans {
            assert_eq!(plan.first(), Some(&format!("SEARCH {index}")), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("USE TEMP B-TREE")), "{plan:?}");
        }
    }
    // No index has the order of the list of a contact's conversations: every new message would have to update such an index.
    let conversations = crate::store::Db::conversations_of(store, &"k".into());
    assert!(matches!(conversations.row_bound(), RowBound::Rows));
    let plan = db.page_plan::<Conversation>("conversations", conversations, &deep).await.unwrap();
    let by_contact = "SEARCH conversations USING INDEX conversations_by_contact (store_id=? AND contact_id=?)";
    assert_eq!(plan, [by_contact, "USE TEMP B-TREE FOR ORDER BY"]);
    let window = |after: Option<i64>, until: Option<i64>| TicketWindow {
        conversation_id: "c1".into(),
        after: after.map(Timestamp::from_millis),
        until: until.map(Timestamp::from_millis),
    };
    for (window, page, range) in [
        (window(None, None), &first(20), ""),
        (window(None, None), &deep, " AND (sent_at,id)<(?,?)"),
        (window(Some(1), Some(9)), &first(20), " AND sent_at>? AND sent_at<?"),
        (window(Some(1), Some(9)), &deep, " AND sent_at>? AND (sent_at,id)<(?,?)"),
    ] {
        let plan = db.page_plan::<Message>("messages", message_conditions(store, &window, page), page).await.unwrap();
        assert_eq!(
            plan,
            [format!("SEARCH messages USING INDEX messages_by_conversation (store_id=? AND conversation_id=?{range})")],
            "{window:?}"
        );
    }
    // A window bounds the times of a ticket's messages. A cursor above the window's upper bound comes from another list. The statement then
    // also reads the rows between the bound and the cursor, so it counts as unbounded (`RowBound::Rows`).
    let at = deep.after.as_ref().unwrap().at;
    for (until, bounded) in [(at - 1, false), (at, true), (at + 1, true)] {
        let conditions = message_conditions(store, &window(None, Some(until)), &deep);
        assert_eq!(matches!(conditions.row_bound(), RowBound::Keys), bounded, "{until}");
    }
}
