use std::sync::atomic::{AtomicBool, Ordering};

use proptest::{prelude::*, test_runner::TestRunner};

use super::*;
use crate::{
    domain::{
        field_tests::Test,
        fields::Comparable,
        filters::{LabelFilter, LabelOperator, OpenedAt},
    },
    store::{
        entity::tickets,
        fixture::{Fixture, counter, first},
    },
};

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// What some tickets have, and others have not.
fn filters() -> Vec<(TicketFilter, Vec<FieldTest>)> {
    let labels = |operator| Some(LabelFilter { operator, label_ids: vec!["l0".into()] });
    let none = TicketFilter::default;
    let field = |test| vec![FieldTest { field_id: "f".into(), test }];
    vec![
        (TicketFilter { labels: labels(LabelOperator::ContainsAny), ..none() }, vec![]),
        (TicketFilter { labels: labels(LabelOperator::DoesNotContainAny), ..none() }, vec![]),
        (none(), field(Test::AnyOf(vec![Comparable::Text("x".into())]))),
        (none(), field(Test::Absent)),
        (TicketFilter { assignee_user_ids: vec!["u1".into()], ..none() }, vec![]),
        (TicketFilter { unassigned: true, ..none() }, vec![]),
        (TicketFilter { handled_by_user_ids: vec!["u1".into()], ..none() }, vec![]),
        (TicketFilter { resolution_statuses: vec!["none".into()], ..none() }, vec![]),
        (TicketFilter { is_follow_up: Some(true), ..none() }, vec![]),
        (TicketFilter { account_ids: vec!["a1".into()], ..none() }, vec![]),
        (TicketFilter { conversation_id: Some("v1".into()), ..none() }, vec![]),
        (TicketFilter { opened_at: Some(OpenedAt::After(Timestamp::from_millis(0))), ..none() }, vec![]),
        (TicketFilter { is_spam: true, unassigned: true, ..none() }, vec![]),
        (TicketFilter { waiting_minutes: Some(0), ..none() }, vec![]),
    ]
}

async fn total(fixture: &Fixture, shown: Shown, (filter, tests): &(TicketFilter, Vec<FieldTest>), now: Timestamp) -> u64 {
    // A page of one, which seldom has them all.
    fixture.db.tickets(&fixture.store, filter, shown, tests, now, &first(1)).await.unwrap().total.unwrap()
}

/// What is told is what a count says that remembers nothing.
async fn agree(fixture: &Fixture, now: Timestamp) {
    let counted = fixture.db.counted();
    for shown in [Shown::Open, Shown::Closed, Shown::All] {
        for filter in filters() {
            let told = total(fixture, shown, &filter, now).await;
            let kept = counted.take();
            assert_eq!(told, total(fixture, shown, &filter, now).await, "{shown:?}, {filter:?}");
            counted.put_back(kept);
        }
    }
}

/// Changes that some filter goes by: of a ticket, of what labels a conversation has, and of what values a ticket has.
const FOUND_BY: [&str; 19] = [
    "UPDATE tickets SET is_open = NOT is_open AND conversation_id = 'v{n}' WHERE id = 't{n}'",
    "UPDATE tickets SET is_spam = NOT is_spam WHERE id = 't{n}'",
    "UPDATE tickets SET is_follow_up = NOT is_follow_up WHERE id = 't{n}'",
    "UPDATE tickets SET snoozed_until = CASE WHEN snoozed_until IS NULL THEN 1500 END WHERE id = 't{n}'",
    "UPDATE tickets SET account_id = CASE WHEN account_id = 'a1' THEN 'a2' ELSE 'a1' END WHERE id = 't{n}'",
    "UPDATE tickets SET assignee_user_id = CASE WHEN assignee_user_id IS NULL THEN 'u1' END WHERE id = 't{n}'",
    "UPDATE tickets SET handled_by = CASE WHEN handled_by IS NULL THEN 'u1' END WHERE id = 't{n}'",
    "UPDATE tickets SET resolution_status = CASE WHEN resolution_status IS NULL THEN 'solved' END WHERE id = 't{n}'",
    "UPDATE tickets SET opened_at = 1 - opened_at WHERE id = 't{n}'",
    "UPDATE tickets SET is_open = FALSE, conversation_id = 'v1' WHERE id = 't{n}'",
    "DELETE FROM ticket_field_values WHERE ticket_id = 't{n}'; DELETE FROM tickets WHERE id = 't{n}'",
    "INSERT INTO conversation_labels (store_id, conversation_id, label_id) VALUES ('{store}', 'v{n}', 'l0') ON CONFLICT DO NOTHING",
    "DELETE FROM conversation_labels WHERE conversation_id = 'v{n}' AND label_id = 'l0'; \
     INSERT INTO conversation_labels (store_id, conversation_id, label_id) VALUES ('{store}', 'v{n}', 'l1') ON CONFLICT DO NOTHING",
    "DELETE FROM conversation_labels WHERE conversation_id = 'v{n}'",
    "INSERT INTO ticket_field_values (store_id, ticket_id, field_id, position, text_value, folded) \
     SELECT '{store}', 't{n}', 'f', 0, 'x', 'x' FROM tickets WHERE id = 't{n}' ON CONFLICT DO NOTHING",
    "INSERT INTO tickets (store_id, id, ticket_number, is_open, is_spam, is_follow_up, channel, contact_id, account_id, \
     conversation_id, opened_at, ticket_fields, label_marks, field_marks, text_marks, sort_at, created_at, updated_at) \
     VALUES ('{store}', 'n{n}', 'n{n}', FALSE, FALSE, FALSE, 'line', 'k1', 'a1', 'v{n}', 0, '{}', 0, 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING",
    // As imports do with tickets that come without an account.
    "UPDATE tickets SET account_id = '' WHERE id = 't{n}'; UPDATE tickets SET account_id = 'a3' WHERE id = 't{n}' AND account_id = ''",
    "UPDATE ticket_field_values SET text_value = 'y', folded = 'y' WHERE ticket_id = 't{n}'",
    "DELETE FROM ticket_field_values WHERE ticket_id = 't{n}'",
];

/// The key of a label, which nothing changes: on SQLite the label's list would not follow (`m0009_labelled`), so that it cannot be
/// among steps that go on from it. It is marked all the same.
const RELABELLED: &str = "UPDATE conversation_labels SET label_id = 'l1' WHERE conversation_id = 'v{n}'";

/// What messages change, and nobody's total goes by.
const OF_MESSAGES: [&str; 2] = [
    "UPDATE tickets SET sort_at = sort_at + 1, waiting_since = 0, updated_at = updated_at + 1, is_open = is_open WHERE store_id = '{store}'",
    "UPDATE conversations SET unread_count = unread_count + 1, sort_at = sort_at + 1 WHERE store_id = '{store}'",
];

const TICKETS: u8 = 6;

async fn change(fixture: &Fixture, statement: &str, n: u8) {
    fixture.execute(&statement.replace("{n}", &n.to_string()).replace("{store}", fixture.store.as_str())).await.unwrap();
}

/// Tickets that are looked at whatever is asked for: their marks rule nothing out.
async fn filled(fixture: &Fixture) {
    for n in 0..TICKETS {
        fixture.conversation(&format!("v{n}"), |row| row.label_marks = i64::MAX).await;
        ticket(fixture, n, true).await;
    }
}

async fn ticket(fixture: &Fixture, n: u8, is_open: bool) {
    let conversation_id = format!("v{n}");
    let all = i64::MAX;
    fixture
        .ticket(&format!("t{n}"), |row| {
            *row = tickets::Model { is_open, conversation_id, field_marks: all, text_marks: all, ..row.clone() }
        })
        .await;
}

async fn mark(fixture: &Fixture, now: Timestamp) -> Mark {
    let mut sql = Sql::of(&fixture.store, "SELECT ");
    fixture.db.push_mark(&mut sql, Shown::Open, false, now);
    fixture.db.first(sql, |cells| cells.take()).await.unwrap().unwrap()
}

#[test]
fn totals_that_are_told_are_what_a_count_would_be() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(Fixture::alone());
    runtime.block_on(filled(&fixture));
    let mut runner = TestRunner::new(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() });
    let steps = proptest::collection::vec((0..FOUND_BY.len(), 0..TICKETS, any::<bool>()), 1..8);
    let outcome = runner.run(&steps, |steps| {
        runtime.block_on(async {
            for (statement, n, fold) in steps {
                change(&fixture, FOUND_BY[statement], n).await;
                agree(&fixture, NOW).await;
                if fold {
                    fixture.db.fold_totals().await.unwrap();
                }
                if fixture.db.ticket(&fixture.store, &format!("t{n}").as_str().into()).await.unwrap().is_none() {
                    ticket(&fixture, n, false).await;
                    agree(&fixture, NOW).await;
                }
            }
            agree(&fixture, Timestamp::from_millis(2_000)).await;
        });
        Ok(())
    });
    outcome.unwrap();
}

#[tokio::test]
async fn every_change_that_a_filter_goes_by_is_marked_and_no_message_is() {
    let fixture = Fixture::alone().await;
    filled(&fixture).await;
    for n in 0..TICKETS {
        fixture.label(&format!("v{n}"), "l0").await;
        fixture.values(&format!("t{n}"), "f", [Comparable::Text("x".to_owned())]).await;
    }
    // Those that add come behind those that take away.
    let (adding, others): (Vec<&str>, Vec<&str>) = FOUND_BY.iter().partition(|statement| statement.starts_with("INSERT"));
    for statement in others.into_iter().chain(adding).chain([RELABELLED]) {
        let before = mark(&fixture, NOW).await;
        // One ticket goes; all else is done to another.
        change(&fixture, statement, if statement.contains("DELETE FROM tickets") { 5 } else { 2 }).await;
        assert_ne!(before, mark(&fixture, NOW).await, "{statement}");
    }
    let before = mark(&fixture, NOW).await;
    change(&fixture, "DELETE FROM tickets WHERE id = 'n{n}'", 2).await;
    assert_ne!(before, mark(&fixture, NOW).await);
    let before = mark(&fixture, NOW).await;
    for statement in OF_MESSAGES {
        change(&fixture, statement, 0).await;
    }
    assert_eq!(before, mark(&fixture, NOW).await);
}

#[tokio::test]
async fn a_snooze_ends_without_a_change() {
    let fixture = Fixture::alone().await;
    filled(&fixture).await;
    change(&fixture, "UPDATE tickets SET snoozed_until = 1500 WHERE id = 't{n}'", 1).await;
    let filter = (TicketFilter { unassigned: true, ..TicketFilter::default() }, vec![]);
    for (now, shown) in [(1_000, 5), (1_499, 5), (1_500, 6), (1_400, 5), (9_000, 6)] {
        assert_eq!(total(&fixture, Shown::Open, &filter, Timestamp::from_millis(now)).await, shown, "at {now}");
    }
}

#[tokio::test]
async fn who_waits_is_counted_each_time() {
    let fixture = Fixture::alone().await;
    filled(&fixture).await;
    let filter = (TicketFilter { waiting_minutes: Some(0), ..TicketFilter::default() }, vec![]);
    for (n, waiting) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
        if waiting > 0 {
            change(&fixture, "UPDATE tickets SET waiting_since = 0 WHERE id = 't{n}'", n).await;
        }
        assert_eq!(total(&fixture, Shown::Open, &filter, NOW).await, waiting);
    }
}

#[tokio::test]
async fn what_was_counted_is_not_counted_again_until_something_changes() {
    let (statements, on_statement) = counter();
    let fixture = Fixture::open(Some(on_statement)).await;
    filled(&fixture).await;
    let filter = (TicketFilter { unassigned: true, ..TicketFilter::default() }, vec![]);
    let cost = async |now: i64| {
        let before = statements.load(Ordering::Relaxed);
        total(&fixture, Shown::Open, &filter, Timestamp::from_millis(now)).await;
        statements.load(Ordering::Relaxed) - before
    };
    let counted = cost(1_000).await;
    let kept = cost(1_001).await;
    assert_eq!((counted, kept), (2, 1));
    for statement in OF_MESSAGES {
        change(&fixture, statement, 0).await;
    }
    assert_eq!(cost(1_002).await, kept);
    change(&fixture, "UPDATE tickets SET assignee_user_id = 'u1' WHERE id = 't{n}' AND store_id = '{store}'", 1).await;
    assert_eq!(cost(1_003).await, counted);
    assert_eq!(cost(1_004).await, kept);
    // As another instant, which names no other total.
    fixture.db.counted().let_a_minute_pass();
    assert_eq!(cost(1_005).await, counted);
}

#[tokio::test]
async fn who_asks_while_it_is_counted_waits_for_that() {
    let (statements, on_statement) = counter();
    let fixture = Fixture::open(Some(on_statement)).await;
    filled(&fixture).await;
    let filter = (TicketFilter { unassigned: true, ..TicketFilter::default() }, vec![]);
    for n in 1..4 {
        let before = statements.load(Ordering::Relaxed);
        let asked = futures_util::future::join_all((0..8).map(|_| total(&fixture, Shown::Open, &filter, NOW))).await;
        assert_eq!(asked, [u64::from(TICKETS - n + 1); 8]);
        // A page each, and one count.
        assert_eq!(statements.load(Ordering::Relaxed) - before, 9);
        change(&fixture, "UPDATE tickets SET assignee_user_id = 'u1' WHERE id = 't{n}' AND store_id = '{store}'", n).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_told_last_is_exact_however_many_wrote_and_asked() {
    let fixture = std::sync::Arc::new(Fixture::alone().await);
    filled(&fixture).await;
    let writers = (0..TICKETS).map(|n| {
        let fixture = fixture.clone();
        tokio::spawn(async move {
            for round in 0..10_usize {
                // Of all but those that move tickets or remove them, which others change meanwhile.
                let others = FOUND_BY.iter().filter(|statement| !statement.contains("v1") && !statement.contains("FROM tickets"));
                let others: Vec<&&str> = others.collect();
                change(&fixture, others[(round * 5 + usize::from(n)) % others.len()], n).await;
                fixture.db.fold_totals().await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let (ended, written) = (std::sync::Arc::new(AtomicBool::new(false)), fixture.clone());
    let end = ended.clone();
    let reader = tokio::spawn(async move {
        // Once more when all is written: what was kept in the midst of it is told or not.
        loop {
            let last = end.load(Ordering::Acquire);
            for shown in [Shown::Open, Shown::Closed, Shown::All] {
                for filter in filters() {
                    total(&written, shown, &filter, NOW).await;
                }
            }
            if last {
                break;
            }
        }
    });
    for writer in writers {
        writer.await.unwrap();
    }
    ended.store(true, Ordering::Release);
    reader.await.unwrap();
    agree(&fixture, NOW).await;
}
