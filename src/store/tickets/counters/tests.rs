//! Tests of the counters (materialised totals): each total equals a `COUNT` of the rows.

use proptest::{prelude::*, test_runner::TestRunner};

use super::*;
use crate::{
    domain::{
        contacts::ContactFilter,
        paging::{PageRequest, Position},
        ticket_filters::TicketFilter,
    },
    store::fixture::{Fixture, first},
};

const NOW: Timestamp = Timestamp::from_millis(1_000);

/// Counts the rows of a table in the store that fulfil a condition.
async fn counted(fixture: &Fixture, table: &str, condition: &str) -> u64 {
    let sql = Sql::of(&fixture.store, &format!("SELECT COUNT(*) FROM {table} WHERE store_id = $1 AND {condition}"));
    let count: Option<i64> = fixture.db.first(sql, |cells| cells.take()).await.unwrap();
    count.unwrap() as u64
}

/// Asserts that the totals of the lists equal counts of the rows.
async fn agree(fixture: &Fixture) {
    let db = &fixture.db;
    let contacts = db.contacts(&fixture.store, &ContactFilter::default(), &first(20)).await.unwrap().total;
    assert_eq!(contacts, Some(counted(fixture, "contacts", "TRUE").await));
    for spam in [false, true] {
        for (shown, condition) in [
            (ShownTickets::Open, "is_open = TRUE AND (snoozed_until IS NULL OR snoozed_until <= 1000)"),
            (ShownTickets::Closed, "is_open = FALSE"),
            (ShownTickets::All, "TRUE"),
        ] {
            let filter = TicketFilter { is_spam: spam, ..TicketFilter::default() };
            let total = db.tickets(&fixture.store, &filter, shown, &[], NOW, &first(2)).await.unwrap().total.unwrap();
            assert_eq!(total, db.ticket_total(&fixture.store, shown, spam, NOW).await.unwrap());
            let condition = format!("{condition} AND is_spam = {}", if spam { "TRUE" } else { "FALSE" });
            assert_eq!(total, counted(fixture, "tickets", &condition).await, "{shown:?}, spam: {spam}");
        }
    }
}

/// Returns the number of rows in which the totals of the store are stored.
async fn parts(fixture: &Fixture) -> u64 {
    counted(fixture, "totals", "TRUE").await
}

fn insert(fixture: &Fixture, id: u8, open: bool, spam: bool, snoozed: Option<i64>) -> String {
    let (store, snoozed) = (&fixture.store, snoozed.map_or("NULL".to_owned(), |at| at.to_string()));
    format!(
        "INSERT INTO conversations (store_id, id, channel, account_id, contact_id, display_name, reference_id, label_ids, label_marks, is_spam, \
         unread_count, message_count, sort_at, created_at, updated_at) \
         VALUES ('{store}', 'v{id}', 'line', 'a1', 'k1', 'x', 'r{id}', '[]', 0, FALSE, 0, 0, 0, 0, 0) ON CONFLICT (store_id, id) DO NOTHING; \
         INSERT INTO tickets (store_id, id, ticket_number, is_open, is_spam, is_follow_up, channel, contact_id, account_id, \
         conversation_id, opened_at, snoozed_until, ticket_fields, label_marks, field_marks, text_marks, sort_at, created_at, updated_at) \
         VALUES ('{store}', 't{id}', '{id}', {open}, {spam}, FALSE, 'line', 'k1', 'a1', 'v{id}', 0, {snoozed}, '{{}}', 0, 0, 0, 0, 0, 0) \
         ON CONFLICT (store_id, id) DO UPDATE SET is_open = excluded.is_open, is_spam = excluded.is_spam, \
         snoozed_until = excluded.snoozed_until"
    )
}

#[derive(Clone, Debug)]
enum Step {
    Put { id: u8, open: bool, spam: bool, snoozed: Option<i64> },
    Close { spam: bool },
    Turn { id: u8 },
    Remove { id: u8 },
    Fold,
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0..12_u8;
    prop_oneof![
        4 => (id(), any::<bool>(), any::<bool>(), proptest::option::of(999..1002_i64))
            .prop_map(|(id, open, spam, snoozed)| Step::Put { id, open, spam, snoozed }),
        1 => any::<bool>().prop_map(|spam| Step::Close { spam }),
        2 => id().prop_map(|id| Step::Turn { id }),
        1 => id().prop_map(|id| Step::Remove { id }),
        1 => Just(Step::Fold),
    ]
}

#[test]
fn stored_totals_equal_counted_rows_after_random_changes() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = runtime.block_on(Fixture::new());
    let store = fixture.store.clone();
    let mut runner = TestRunner::new(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() });
    let steps = proptest::collection::vec(step(), 1..20);
    let outcome = runner.run(&steps, |steps| {
        runtime.block_on(async {
            for step in steps {
                let sql = match step {
                    Step::Put { id, open, spam, snoozed } => insert(&fixture, id, open, spam, snoozed),
                    Step::Close { spam } => format!("UPDATE tickets SET is_open = FALSE WHERE store_id = '{store}' AND is_spam = {spam}"),
                    Step::Turn { id } => {
                        format!(
                            "UPDATE tickets SET is_open = NOT is_open, is_spam = NOT is_spam WHERE store_id = '{store}' AND id = 't{id}'"
                        )
                    }
                    Step::Remove { id } => format!("DELETE FROM tickets WHERE store_id = '{store}' AND id = 't{id}'"),
                    Step::Fold => {
                        fixture.db.compact_totals().await.unwrap();
                        continue;
                    }
                };
                fixture.execute(&sql).await.unwrap();
            }
            agree(&fixture).await;
        });
        Ok(())
    });
    outcome.unwrap();
}

#[tokio::test]
async fn a_rolled_back_change_is_not_counted() {
    let fixture = Fixture::new().await;
    let tx = fixture.db.begin().await.unwrap();
    tx.script(&insert(&fixture, 1, true, false, None)).await.unwrap();
    drop(tx);
    agree(&fixture).await;
    assert_eq!(fixture.db.ticket_total(&fixture.store, ShownTickets::All, false, NOW).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn totals_stay_exact_during_concurrent_writes_and_compaction() {
    let fixture = std::sync::Arc::new(Fixture::new().await);
    let writers = (0..8_u8).map(|writer| {
        let fixture = fixture.clone();
        tokio::spawn(async move {
            for round in 0..12_u8 {
                let (open, spam) = (round % 2 == 0, round % 3 == 0);
                fixture.execute(&insert(&fixture, writer * 12 + round / 2, open, spam, None)).await.unwrap();
                if round % 4 == 0 {
                    fixture.db.compact_totals().await.unwrap();
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    agree(&fixture).await;
    assert!(fixture.db.ticket_total(&fixture.store, ShownTickets::All, false, NOW).await.unwrap() > 0);
    for _ in 0..2 {
        fixture.db.compact_totals().await.unwrap();
        agree(&fixture).await;
    }
    let most = (TOTAL_PARTS as u64) * 6;
    let parts = parts(&fixture).await;
    assert!(parts <= most, "{parts} parts");
}

#[tokio::test]
async fn migrations_count_existing_rows_into_the_totals() {
    let fixture = Fixture::alone().await;
    for (id, open) in [(1, true), (2, true), (3, false)] {
        fixture.execute(&insert(&fixture, id, open, false, None)).await.unwrap();
    }
    if fixture.db.backend() == DbBackend::Postgres {
        // Makes the totals wrong, as an earlier version of `m0008_totals` did if rows were written while it ran. The migration
        // `m0011_recount_totals` must correct them.
        fixture.execute("UPDATE totals SET value = value + 7").await.unwrap();
        fixture.migrate_again("m0011_recounted").await;
        agree(&fixture).await;
        // Runs the migration while another transaction replaces the rows of each total by one row with their sum.
        let folding = fixture.db.begin().await.unwrap();
        let names = Sql::of(&fixture.store, "SELECT DISTINCT name FROM totals WHERE store_id = $1");
        for name in fixture.db.all(names, |cells| cells.take::<String>()).await.unwrap() {
            fold(&folding, &fixture.store, &name).await.unwrap();
        }
        let waits = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let folded = async {
            while fixture.db.first(Sql::fixed(waits), |cells| cells.take::<i64>()).await.unwrap() == Some(0) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            folding.commit().await.unwrap();
        };
        let both = async { tokio::join!(fixture.migrate_again("m0011_recounted"), folded) };
        tokio::time::timeout(std::time::Duration::from_secs(60), both).await.unwrap();
        agree(&fixture).await;
    }
    fixture.migrate_again("m0008_totals").await;
    agree(&fixture).await;
    assert_eq!(fixture.db.ticket_total(&fixture.store, ShownTickets::All, false, NOW).await.unwrap(), 3);
    fixture.execute("DELETE FROM tickets WHERE id = 't1'").await.unwrap();
    agree(&fixture).await;
}

/// Asserts that an empty page after a cursor has a total, too, although it has no row that could contain the total.
#[tokio::test]
async fn an_empty_page_after_a_cursor_has_a_total() {
    let fixture = Fixture::new().await;
    fixture.ticket("t1", |_| {}).await;
    let page = first(20);
    let last = Position { at: i64::MIN, id: String::new(), rank: None, as_of: None };
    let behind = PageRequest { after: Some(last), ..page.clone() };
    for (page, rows) in [(&page, 1), (&behind, 0)] {
        let tickets = fixture.db.tickets(&fixture.store, &TicketFilter::default(), ShownTickets::All, &[], NOW, page).await.unwrap();
        let contacts = fixture.db.contacts(&fixture.store, &ContactFilter::default(), page).await.unwrap();
        let conversations = fixture.db.conversations_of_contact(&fixture.store, &"k1".into(), page).await.unwrap();
        assert_eq!([tickets.rows.len(), contacts.rows.len(), conversations.rows.len()], [1, 1, 2].map(|all| all * rows));
        assert_eq!([tickets.total, contacts.total, conversations.total], [1, 1, 2].map(Some));
    }
}

/// Asserts that PostgreSQL plans the statement of a page with its total five times, each time for the actual values, and then keeps a
/// generic plan. Planning takes longer than reading the page. PostgreSQL keeps the generic plan only if it does not look more expensive
/// than the first five plans. If these plans knew the time `now` of the request, they would look cheaper, since few snoozes end after that
/// time. So the statement hides the time from the planner (see `push_snoozed`).
#[tokio::test]
async fn the_statement_of_a_page_with_its_total_gets_a_generic_plan() {
    let fixture = Fixture::alone().await;
    if fixture.db.backend() != DbBackend::Postgres {
        return;
    }
    for id in 0..2_000_i64 {
        let snoozed = (id % 4 == 0).then_some(id);
        fixture.ticket(&format!("t{id}"), |row| row.snoozed_until = snoozed).await;
    }
    fixture.execute("ANALYZE tickets; ANALYZE totals").await.unwrap();
    let now = Timestamp::from_millis(1_990);
    for _ in 0..20 {
        let page = fixture.db.tickets(&fixture.store, &TicketFilter::default(), ShownTickets::Open, &[], now, &first(20)).await.unwrap();
        assert_eq!(page.total, Some(1_998));
    }
    let plans = "SELECT COUNT(*), CAST(SUM(custom_plans) AS BIGINT), CAST(SUM(generic_plans) AS BIGINT) FROM pg_prepared_statements \
                 WHERE statement LIKE 'SELECT id%FROM totals%'";
    let plans = fixture.db.first(Sql::fixed(plans), |cells| Ok([cells.take::<i64>()?, cells.take()?, cells.take()?])).await.unwrap();
    assert_eq!(plans, Some([1, 5, 15]), "statements, planned and kept");
}
