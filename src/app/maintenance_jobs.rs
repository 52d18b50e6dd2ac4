//! Maintenance jobs: periodic work on the database that no request waits for, such as deleting old rows.

use std::{fmt::Display, future::Future, time::Duration};

use crate::{service::Service, store::change_log::retention::RetentionPass, supervisor::TaskReporter};

/// The interval of the maintenance jobs ([`run_maintenance_jobs`]), and the shorter interval after a failure.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);
const MAINTENANCE_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Former sort positions of rows are pruned once in this many intervals, since on PostgreSQL pruning takes at least one statement for each
/// store.
const PRUNING_PERIOD: u64 = 60;

/// Runs the maintenance jobs periodically, and once more at the end:
///
/// - saves the time of the last use of each API key
/// - on PostgreSQL, replaces the rows whose sum is a stored total (a number of tickets or contacts) by one row
/// - deletes expired signatures of requests from bridges (the HTTP services of channels)
/// - deletes the oldest entries of the change log and of the feeds of changes
/// - every [`PRUNING_PERIOD`] intervals, deletes the oldest former sort positions of rows, which cursors need to page through a snapshot
pub(super) async fn run_maintenance_jobs(service: Service, stopped: impl Future<Output = ()>, reporter: TaskReporter) {
    let mut stopped = std::pin::pin!(stopped);
    let mut pruning = RetentionPass::default();
    let (mut stop, mut pause) = (false, MAINTENANCE_INTERVAL);
    for interval in 0_u64.. {
        reporter.beat();
        stop = stop || tokio::time::timeout(pause, &mut stopped).await.is_ok();
        let places = if interval % PRUNING_PERIOD == 0 { service.db().prune_former_positions().await } else { Ok(0) };
        let done = [
            log_job_outcome(&reporter, "the oldest former positions of rows could not be deleted", places),
            log_job_outcome(&reporter, "it could not be written down when keys were last used", service.save_key_uses().await),
            log_job_outcome(&reporter, "the partial totals could not be added up", service.db().compact_totals().await),
            log_job_outcome(
                &reporter,
                "the expired signatures of bridges could not be deleted",
                service.db().prune_signatures(service.clocks_and_ids().real.now()).await,
            ),
            log_job_outcome(
                &reporter,
                "the oldest entries of the change log could not be deleted",
                service.db().prune_change_log(service.clocks_and_ids().now(), service.clocks_and_ids().ahead(), &mut pruning).await,
            ),
            log_job_outcome(
                &reporter,
                "the oldest entries of the feeds of changes could not be removed",
                service.db().prune_record_changes(service.clocks_and_ids().now()).await,
            ),
        ];
        if stop {
            return;
        }
        if done.iter().all(|succeeded| *succeeded) {
            reporter.succeeded();
            pause = MAINTENANCE_INTERVAL;
        } else {
            // While a node of a distributed database is unreachable, some jobs fail. These failures must not make the server unready, since
            // it still serves the stores of the other nodes.
            if !service.db().is_distributed() {
                reporter.failed();
            }
            pause = MAINTENANCE_RETRY_INTERVAL;
        }
    }
}

/// Handles the outcome of a maintenance job: reports progress to the supervisor, and logs a failure with the text `undone`, which says what
/// could not be done. Returns whether the job succeeded.
fn log_job_outcome<T>(reporter: &TaskReporter, undone: &str, outcome: Result<T, impl Display>) -> bool {
    reporter.beat();
    outcome.inspect_err(|error| tracing::warn!(%error, "{undone}")).is_ok()
}
