//! Tests of the readiness check with a database whose check outlasts its probe.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::{sleep, timeout};

use crate::{
    app,
    domain::clock::ClocksAndIds,
    readiness::Readiness,
    store::{
        fixture::{Fixture, counter},
        wait_limit::WAIT_LIMIT,
    },
    supervisor::Supervisor,
    telemetry::metrics::Metrics,
};

/// Writes the row that the check writes. So a transaction with this statement keeps the check waiting until it ends.
const HELD: &str = "INSERT INTO write_probes (id, written_at) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET written_at = 0";
const UNUSABLE: &str = "the database is unusable: damaged, replaced, or without its tables";

fn readiness(fixture: &Fixture) -> Readiness {
    Readiness::new(app::service(fixture.db.clone(), ClocksAndIds::real()), Supervisor::new(Metrics::default()))
}

#[tokio::test]
async fn a_check_that_ended_long_before_the_probe_is_repeated() {
    let fixture = Fixture::alone().await;
    let readiness = readiness(&fixture);
    let held = fixture.db.begin().await.unwrap();
    held.script(HELD).await.unwrap();
    readiness.reasons().await;
    held.commit().await.unwrap();
    // The check ends now, and succeeds. No probe reads its result within a second.
    sleep(Duration::from_millis(500)).await;
    fixture.execute("ALTER TABLE templates RENAME TO templates_aside").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(readiness.reasons().await, [UNUSABLE]);
    fixture.execute("ALTER TABLE templates_aside RENAME TO templates").await.unwrap();
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(readiness.reasons().await, [""; 0]);
}

/// On SQLite, where the check waits for the single writer for ten seconds.
#[tokio::test]
async fn a_check_that_failed_long_before_the_probe_stays_in_force_while_it_is_repeated() {
    let fixture = Fixture::new().await;
    if !fixture.is_sqlite() {
        return;
    }
    let readiness = readiness(&fixture);
    let held = fixture.db.begin().await.unwrap();
    assert_eq!(readiness.reasons().await, [""; 0], "the check still waits");
    sleep(WAIT_LIMIT).await;
    assert_eq!(readiness.reasons().await, ["another writer holds the database"]);
    drop(held);
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(readiness.reasons().await, [""; 0]);
}

#[tokio::test]
async fn a_probe_waits_for_the_check_that_a_cancelled_probe_began() {
    let (statements, count) = counter();
    let fixture = Fixture::open(Some(count)).await;
    let readiness = readiness(&fixture);
    let held = fixture.db.begin().await.unwrap();
    held.script(HELD).await.unwrap();
    assert!(timeout(Duration::from_millis(300), readiness.reasons()).await.is_err());
    let of_one_check = statements.load(Ordering::Relaxed);
    let next = tokio::spawn(async move { readiness.reasons().await });
    sleep(Duration::from_millis(300)).await;
    assert_eq!(statements.load(Ordering::Relaxed), of_one_check, "no second check begins");
    held.commit().await.unwrap();
    assert_eq!(next.await.unwrap(), [""; 0]);
}
