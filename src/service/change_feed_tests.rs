//! Tests of the change feed: which changes it contains, their order, how long they are kept, and that a client's copy becomes equal to the
//! store.

use std::collections::BTreeMap;

use super::{Error, Service, test_service};
use crate::{
    domain::{fake_clock_and_test_rules::MovableClock, ndjson_records::RecordKind},
    store::fixture::Fixture,
};

const DAY: i64 = 24 * 3600 * 1000;

struct Bench {
    fixture: Fixture,
    clock: std::sync::Arc<MovableClock>,
    service: Service,
}

/// A copy of a store's records, as a client of the feed keeps it.
#[derive(Default)]
struct KeptCopy {
    after: i64,
    lines: BTreeMap<(RecordKind, String), String>,
}

impl Bench {
    async fn new() -> Self {
        let fixture = Fixture::alone().await;
        let clock = MovableClock::at(1_000_000);
        let service = test_service::service(fixture.db.clone(), clock.clone(), test_service::Silent);
        Self { fixture, clock, service }
    }

    /// Runs an SQL statement in which `{store}` stands for the store's id.
    async fn sql(&self, statement: &str) {
        self.fixture.execute(&statement.replace("{store}", self.fixture.store.as_str())).await.unwrap();
    }

    async fn snapshot(&self, limit: u64, meanwhile: impl AsyncFn(RecordKind)) -> KeptCopy {
        let (mut copy, mut start) = (KeptCopy::default(), None);
        for kind in RecordKind::ALL {
            let mut after: Option<String> = None;
            loop {
                let page = self.service.snapshot_page(&self.fixture.store, kind, after.as_deref(), limit).await.unwrap();
                start.get_or_insert(page.start);
                after = page.records.last().map(|record| record.id().to_owned());
                let found = page.records.len() as u64;
                let lines = page.records.iter().map(|record| ((kind, record.id().to_owned()), serde_json::to_string(record).unwrap()));
                copy.lines.extend(lines);
                meanwhile(kind).await;
                if found < limit {
                    break;
                }
            }
        }
        KeptCopy { after: start.unwrap(), ..copy }
    }

    /// Reads pages of the feed and applies them to `copy` until no further change is left. Returns the kind and id of each change, with a
    /// minus before a deleted record.
    async fn follow(&self, copy: &mut KeptCopy, limit: u64) -> Vec<String> {
        let mut got = Vec::new();
        loop {
            let page = self.service.changes_after(&self.fixture.store, copy.after, &[], limit).await.unwrap();
            let sequences: Vec<i64> = page.changes.iter().map(|change| change.sequence).collect();
            assert!(sequences.is_sorted() && sequences.iter().all(|sequence| (copy.after + 1..=page.reached).contains(sequence)));
            for change in page.changes {
                let sign = if change.record.is_some() { "" } else { "-" };
                got.push(format!("{sign}{} {}", change.kind.name(), change.id));
                match change.record {
                    Some(record) => copy.lines.insert((change.kind, change.id), serde_json::to_string(&record).unwrap()),
                    None => copy.lines.remove(&(change.kind, change.id)),
                };
            }
            copy.after = page.reached;
            if page.is_last {
                return got;
            }
        }
    }

    async fn assert_equal(&self, copy: &KeptCopy) {
        let mut exported = Vec::new();
        super::export::run(&self.service.db().clone(), &self.fixture.store, &mut exported).await.unwrap();
        let lines = copy.lines.iter().map(|((kind, _), record)| format!("{{\"kind\":\"{}\",\"record\":{record}}}\n", kind.name()));
        assert_eq!(lines.collect::<String>(), String::from_utf8(exported).unwrap());
    }
}

/// SQL statements that insert records of several kinds, parents before children, and then change or delete rows that are part of records.
const NEW: [&str; 13] = [
    "INSERT INTO roles (store_id, id, name, kind) VALUES ('{store}', 'r', 'R', 'agent')",
    "INSERT INTO users (store_id, id, user_id, name, created_at) VALUES ('{store}', 'u', 'uu', 'U', 0)",
    "INSERT INTO teams (store_id, id, name, created_at) VALUES ('{store}', 't', 'T', 0)",
    "INSERT INTO accounts (store_id, id, channel, name, status, created_at, updated_at) VALUES ('{store}', 'a', 'line', 'A', 'healthy', 0, 0)",
    "INSERT INTO templates (store_id, id, account_id, name, parameter_format, language, status, category, components, search_text) \
     VALUES ('{store}', 'm', 'a', 'M', 'named', 'en', 'APPROVED', 'c', '[]', 'm')",
    "INSERT INTO labels (store_id, id, label, folded, color, created_at, updated_at) VALUES ('{store}', 'l', 'L', 'l', 'red', 0, 0)",
    "INSERT INTO contact_fields (store_id, id, name, display_type, data_type, sort_order, active) \
     VALUES ('{store}', 'f', 'F', 'text', 'string', 1, TRUE)",
    "INSERT INTO team_members (store_id, team_id, position, user_id) VALUES ('{store}', 't', 0, 'uu')",
    "INSERT INTO account_users (store_id, account_id, user_id) VALUES ('{store}', 'a', 'uu')",
    "UPDATE conversations SET unread_count = 3 WHERE store_id = '{store}' AND id = 'c0'",
    "UPDATE contacts SET note = 'n' WHERE store_id = '{store}' AND id = 'k1'",
    "DELETE FROM labels WHERE store_id = '{store}' AND id = 'l'",
    "DELETE FROM account_users WHERE store_id = '{store}'",
];

#[tokio::test]
async fn the_feed_reports_committed_changes_and_a_copy_that_follows_becomes_equal() {
    let bench = Bench::new().await;
    bench.sql("UPDATE contacts SET note = 'before' WHERE store_id = '{store}'").await;
    let mut copy = bench.snapshot(2, async |_| {}).await;
    assert_eq!((copy.after, bench.follow(&mut copy, 10).await), (0, vec![]));
    bench.assert_equal(&copy).await;
    for statement in NEW {
        bench.sql(statement).await;
    }
    let expected = ["role r", "user u", "template m", "contactField f", "team t", "conversation c0", "contact k1", "-label l", "account a"];
    let got = bench.follow(&mut copy, 500).await;
    assert_eq!(got, expected, "each record once, at its last change");
    bench.assert_equal(&copy).await;
    // The feed contains neither a change that was rolled back nor a change of another store.
    let tx = bench.fixture.db.begin().await.unwrap();
    tx.script(&format!("UPDATE contacts SET note = 'gone' WHERE store_id = '{}'", bench.fixture.store)).await.unwrap();
    drop(tx);
    bench.sql("INSERT INTO stores (id, name, currency, reopen_window_hours, created_at) VALUES ('other', 'O', 'THB', 24, 0)").await;
    bench
        .sql("INSERT INTO labels (store_id, id, label, folded, color, created_at, updated_at) VALUES ('other', 'l', 'L', 'l', 'red', 0, 0)")
        .await;
    assert_eq!(bench.follow(&mut copy, 10).await, [""; 0]);
    // The feed is read in pages of one entry each. The record of the first entry is deleted.
    bench.sql("DELETE FROM templates WHERE store_id = '{store}'").await;
    bench.sql("UPDATE teams SET name = 'X' WHERE store_id = '{store}'").await;
    bench.sql("DELETE FROM team_members WHERE store_id = '{store}'").await;
    assert_eq!(bench.follow(&mut copy, 1).await, ["-template m", "team t", "team t"]);
    bench.assert_equal(&copy).await;
    let of = |kinds: &'static [RecordKind]| bench.service.changes_after(&bench.fixture.store, 0, kinds, 500);
    let page = of(&[RecordKind::Team, RecordKind::Role]).await.unwrap();
    assert_eq!(page.changes.iter().map(|change| change.id.as_str()).collect::<Vec<_>>(), ["r", "t"]);
    assert_eq!((page.reached, page.is_last), (copy.after, true));
    let page = of(&[RecordKind::Message]).await.unwrap();
    assert_eq!((page.changes.len(), page.reached, page.is_last), (0, copy.after, true));
}

#[tokio::test]
async fn changes_during_a_snapshot_are_also_reported_by_the_feed() {
    let bench = Bench::new().await;
    let write = async |kind: RecordKind| match kind {
        RecordKind::Role => bench.sql(NEW[0]).await,
        RecordKind::Team => bench.sql("DELETE FROM roles WHERE store_id = '{store}'").await,
        RecordKind::Contact => bench.sql("UPDATE contacts SET note = 'during' WHERE store_id = '{store}'").await,
        RecordKind::Comment => bench.sql(NEW[5]).await,
        _ => {}
    };
    let mut copy = bench.snapshot(1, write).await;
    bench.follow(&mut copy, 10).await;
    bench.assert_equal(&copy).await;
    assert!(copy.lines.contains_key(&(RecordKind::Label, "l".to_owned())));
}

#[tokio::test]
async fn transactions_that_run_when_a_feed_begins_and_those_that_commit_late_are_not_missed() {
    let bench = Bench::new().await;
    if bench.fixture.db.is_one_writer() {
        // SQLite has one writer at a time, so no write transactions overlap.
        return;
    }
    let store = bench.fixture.store.clone();
    let late = bench.fixture.db.begin().await.unwrap();
    late.script(&format!("UPDATE contacts SET note = 'late' WHERE store_id = '{store}'")).await.unwrap();
    let service = bench.service.clone();
    let of = store.clone();
    let begun = tokio::spawn(async move { service.snapshot_page(&of, RecordKind::Contact, None, 10).await });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(!begun.is_finished(), "the transaction may record nothing, so a snapshot would lack its change");
    late.commit().await.unwrap();
    let page = begun.await.unwrap().unwrap();
    assert!(serde_json::to_string(&page.records).unwrap().contains("late"));
    // The change of a transaction that wrote first and commits last gets the later sequence number.
    let mut copy = bench.snapshot(10, async |_| {}).await;
    let slow = bench.fixture.db.begin().await.unwrap();
    slow.script(&format!("UPDATE contacts SET note = 'slow' WHERE store_id = '{store}'")).await.unwrap();
    bench.sql(NEW[0]).await;
    assert_eq!(bench.follow(&mut copy, 10).await, ["role r"]);
    slow.commit().await.unwrap();
    assert_eq!(bench.follow(&mut copy, 10).await, ["contact k1"]);
    bench.assert_equal(&copy).await;
}

#[tokio::test]
async fn the_feed_removes_old_changes_and_refuses_readers_that_missed_them() {
    let bench = Bench::new().await;
    let gone = async |after: i64| {
        let found = bench.service.changes_after(&bench.fixture.store, after, &[], 10).await;
        matches!(found, Err(Error::Gone { field, reason }) if field == "after" && reason.contains("snapshot"))
    };
    assert!(gone(0).await, "the feed has not begun");
    let mut copy = bench.snapshot(10, async |_| {}).await;
    for _ in 0..600 {
        bench.sql("UPDATE contacts SET note = 'n' WHERE store_id = '{store}'").await;
    }
    assert!(gone(10_000).await, "no such number was assigned");
    let mut slow = KeptCopy { lines: copy.lines.clone(), ..KeptCopy::default() };
    bench.follow(&mut copy, 500).await;
    assert_eq!(copy.after, 600);
    let prune = async || bench.fixture.db.prune_record_changes(bench.service.clocks_and_ids().now()).await.unwrap();
    bench.clock.pass(6 * DAY);
    assert_eq!((prune().await, bench.follow(&mut slow, 500).await.len()), (0, 2));
    bench.sql("UPDATE contacts SET note = 'new' WHERE store_id = '{store}'").await;
    bench.follow(&mut copy, 500).await;
    bench.clock.pass(2 * DAY);
    assert_eq!(prune().await, 600);
    assert!(gone(0).await && gone(599).await && !gone(600).await && !gone(601).await);
    bench.assert_equal(&copy).await;
    // A feed that no client read for a week is deactivated: later changes are not recorded. After the next activation its sequence
    // numbers continue.
    bench.clock.pass(12 * DAY);
    prune().await;
    bench.sql("UPDATE contacts SET note = 'unseen' WHERE store_id = '{store}'").await;
    assert_eq!(prune().await, 0);
    assert!(gone(601).await);
    let copy = bench.snapshot(10, async |_| {}).await;
    assert!(copy.after > 601 && gone(601).await && !gone(copy.after).await);
    bench.assert_equal(&copy).await;
}
