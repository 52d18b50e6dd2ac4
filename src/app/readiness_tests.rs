//! Test of the readiness check with a database whose check outlasts its probe.

use std::time::Duration;

use tokio::time::sleep;

use crate::{
    app, domain::clock::ClocksAndIds, readiness::Readiness, store::fixture::Fixture, supervisor::Supervisor, telemetry::metrics::Metrics,
};

#[tokio::test]
async fn a_check_that_ended_long_before_the_probe_is_repeated() {
    let fixture = Fixture::alone().await;
    let service = app::service(fixture.db.clone(), ClocksAndIds::real());
    let readiness = Readiness::new(service, Supervisor::new(Metrics::default()));
    // This write holds the only row that the check writes, so that the check outlasts its probe.
    let held = fixture.db.begin().await.unwrap();
    held.script("INSERT INTO write_probes (id, written_at) VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET written_at = 0").await.unwrap();
    readiness.reasons().await;
    held.commit().await.unwrap();
    // The check ends now, and succeeds. Its result is reused for a second.
    sleep(Duration::from_millis(500)).await;
    fixture.execute("ALTER TABLE templates RENAME TO templates_aside").await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(readiness.reasons().await, ["the database is unusable: damaged, replaced, or without its tables"]);
    fixture.execute("ALTER TABLE templates_aside RENAME TO templates").await.unwrap();
    sleep(Duration::from_millis(1100)).await;
    assert_eq!(readiness.reasons().await, [""; 0]);
}
