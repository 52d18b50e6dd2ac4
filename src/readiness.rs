//! The readiness check behind `/readyz`: whether this process can do its work.
//!
//! The process is ready if three conditions hold:
//!
//! - Within the last second, a check found every table and column in the database, and wrote to the database.
//! - In the second before the answer, no request failed because of the disk or a missing write permission.
//! - No background task is failing.
//!
//! A refused checkpoint of the SQLite database is only a warning ([`Readiness::warnings`]): requests still succeed.
//!
//! The check writes to the database, since a read does not show whether the disk has room, whether the process may write, and whether the
//! database file is still at its path. Concurrent probes (requests to `/readyz`) share one check, so probes cause at most one write a
//! second.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::{
    service::Service,
    store::{self, Error, wait_limit::WAIT_LIMIT},
    supervisor::Supervisor,
};

/// How long the result of a check is reused.
const REMEMBERED: Duration = Duration::from_secs(1);

/// How long a probe waits for the check of the database to end.
const PROBE: Duration = Duration::from_secs(2);

const FAILING: &str = "the database cannot do its work: its disk is full or failing, or it is read-only";

/// The readiness of one process.
#[derive(Clone)]
pub struct Readiness {
    service: Service,
    supervisor: Supervisor,
    looked: Arc<Mutex<Looked>>,
}

/// A running check. It returns when it ended, and its result.
type RunningCheck = JoinHandle<(Instant, store::Result<()>)>;

#[derive(Default)]
struct Looked {
    /// The time of the last answer, and the answer. `None` as the answer means that the database is usable.
    answer: Option<(Instant, Option<&'static str>)>,
    /// A check in progress, and the time of its start.
    under_way: Option<(Instant, RunningCheck)>,
}

impl Readiness {
    pub fn new(service: Service, supervisor: Supervisor) -> Self {
        Self { service, supervisor, looked: Arc::default() }
    }

    /// Returns the reasons why the process is not ready; none if it is ready.
    pub async fn reasons(&self) -> Vec<String> {
        let mut reasons = self.supervisor.failing();
        reasons.extend(self.database().await.map(str::to_owned));
        reasons
    }

    /// Returns the problems that need attention, but do not make the process unready.
    pub fn warnings(&self) -> Vec<&'static str> {
        let refused = self.service.db().refused_log_copies() > 0;
        refused
            .then_some("the disk refused a checkpoint of the SQLite database: the write-ahead log grows until a restart")
            .into_iter()
            .collect()
    }

    async fn database(&self) -> Option<&'static str> {
        // Concurrent probes wait here for the check in progress, and reuse its result.
        let mut looked = self.looked.lock().await;
        if let Some((at, answer)) = &looked.answer
            && at.elapsed() < REMEMBERED
        {
            return *answer;
        }
        let before = looked.answer.and_then(|(_, answer)| answer);
        let mut in_force = before;
        loop {
            // The check stays in `under_way` while this probe waits, so that the next probe finds it if the client of this one goes away.
            let (since, check) = looked.under_way.get_or_insert_with(|| {
                let service = self.service.clone();
                let check = async move {
                    let result = service.db().prove_usable(service.clocks_and_ids().now()).await;
                    (Instant::now(), result)
                };
                (Instant::now(), tokio::spawn(check))
            });
            let since = *since;
            let ended = timeout(PROBE, check).await;
            if ended.is_ok() {
                looked.under_way = None;
            }
            let (answer, detail) = match ended {
                // The check outlasted an earlier probe and ended long before this one. It is repeated; until then, its result holds.
                Ok(Ok((at, result))) if at.elapsed() >= REMEMBERED => {
                    in_force = result.err().as_ref().map(reason);
                    continue;
                }
                Ok(Err(_)) if since.elapsed() >= PROBE => continue,
                Ok(Ok((_, Ok(())))) if self.service.db().failed_within(REMEMBERED) => {
                    let detail = "a request failed within the last second because of the disk or a missing write permission";
                    (Some(FAILING), detail.to_owned())
                }
                Ok(Ok((_, Ok(())))) => (None, String::new()),
                Ok(Ok((_, Err(error)))) => (Some(reason(&error)), error.to_string()),
                Ok(Err(panicked)) => (Some("the check of the database panicked or was cancelled"), panicked.to_string()),
                // The check has not ended within `PROBE`. On SQLite it may be waiting for another process that writes, such as an import.
                // Requests that write wait in the same way and then succeed. So the last result stays in force until the check ends or
                // `WAIT_LIMIT` has passed.
                Err(_) => {
                    let waits = self.service.db().is_one_writer() && since.elapsed() < WAIT_LIMIT;
                    let answer = if waits { in_force } else { Some("the database does not answer") };
                    (answer, format!("no answer for {:?}", since.elapsed()))
                }
            };
            looked.answer = Some((Instant::now(), answer));
            match answer {
                Some(reason) if before != answer => tracing::error!(reason, detail, "not ready"),
                None if before.is_some() => tracing::warn!("ready again"),
                _ => {}
            }
            return answer;
        }
    }
}

/// Returns the reason of a failed check as a client may see it: without addresses, paths and statements. The log has the full error.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Busy => "another writer holds the database",
        Error::Unavailable(_) => "the database cannot be reached",
        Error::Failing(_) => FAILING,
        Error::Unusable(_) | Error::Damaged(_) => "the database is unusable: damaged, replaced, or without its tables",
        Error::Unique(_) | Error::ForeignKey(_) | Error::SecretKey(_) | Error::Other(_) => "the database refuses a write",
    }
}
