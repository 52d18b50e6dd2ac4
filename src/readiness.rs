//! Readiness: whether this process can do its work, which is what `/readyz` answers.
//!
//! Ready means that within the last second the database had every table and column and took a write, that it has failed no request for
//! want of disk or right since, and that no background task is failing. The write proves what a read cannot: room on the disk, the right to
//! write, the file behind the path. Probes share one look, so that they cost the database at most one write a second, however many ask.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    task::JoinHandle,
    time::{Instant, timeout},
};

use crate::{
    service::Service,
    store::{self, Error},
    supervisor::Supervisor,
};

/// How long an answer of the database is good for.
const REMEMBERED: Duration = Duration::from_secs(1);

/// How long a probe waits for the database.
const PROBE: Duration = Duration::from_secs(2);

/// How long writers may stand in line before the database counts as one that takes no writes: as long as a request waits.
const LINE: Duration = Duration::from_secs(10);

const FAILING: &str = "the database cannot do its work: its disk is full or fails, or it only reads";

/// The readiness of one process.
#[derive(Clone)]
pub struct Readiness {
    service: Service,
    supervisor: Supervisor,
    looked: Arc<Mutex<Looked>>,
}

#[derive(Default)]
struct Looked {
    /// The last answer, and when it came. `None`: the database is in order.
    answer: Option<(Instant, Option<&'static str>)>,
    /// A look that has not ended, and since when.
    under_way: Option<(Instant, JoinHandle<store::Result<()>>)>,
}

impl Readiness {
    pub fn new(service: Service, supervisor: Supervisor) -> Self {
        Self { service, supervisor, looked: Arc::default() }
    }

    /// What keeps the process from being ready; nothing when it is.
    pub async fn reasons(&self) -> Vec<String> {
        let mut reasons = self.supervisor.failing();
        reasons.extend(self.database().await.map(str::to_owned));
        reasons
    }

    /// What is wrong and does not keep the process from its work yet.
    pub fn warnings(&self) -> Vec<&'static str> {
        let refused = self.service.db().refused_log_copies() > 0;
        refused
            .then_some("the disk refused what the log of the database was copied to: the log grows until a restart")
            .into_iter()
            .collect()
    }

    async fn database(&self) -> Option<&'static str> {
        // Probes that come meanwhile wait here, and find the answer.
        let mut looked = self.looked.lock().await;
        if let Some((at, answer)) = &looked.answer
            && at.elapsed() < REMEMBERED
        {
            return *answer;
        }
        let (since, mut look) = looked.under_way.take().unwrap_or_else(|| {
            let service = self.service.clone();
            (Instant::now(), tokio::spawn(async move { service.db().prove_usable(service.world().now()).await }))
        });
        let before = looked.answer.and_then(|(_, answer)| answer);
        let (answer, detail) = match timeout(PROBE, &mut look).await {
            Ok(Ok(Ok(()))) if self.service.db().failed_within(REMEMBERED) => {
                (Some(FAILING), "a request failed for want of disk or right within the last second".to_owned())
            }
            Ok(Ok(Ok(()))) => (None, String::new()),
            Ok(Ok(Err(error))) => (Some(reason(&error)), error.to_string()),
            Ok(Err(panicked)) => (Some("the look at the database broke off"), panicked.to_string()),
            Err(_) => {
                // On SQLite another process may write, such as an import: requests that write wait as long for it. Until it is known how
                // that ends, the answer stays what it was.
                let waits = self.service.db().is_one_writer() && since.elapsed() < LINE;
                looked.under_way = Some((since, look));
                (if waits { before } else { Some("the database does not answer") }, format!("no answer for {:?}", since.elapsed()))
            }
        };
        looked.answer = Some((Instant::now(), answer));
        match answer {
            Some(reason) if before != answer => tracing::error!(reason, detail, "not ready"),
            None if before.is_some() => tracing::warn!("ready again"),
            _ => {}
        }
        answer
    }
}

/// A reason without what is of no concern to a prober: addresses, paths, statements. The log has all of it.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Busy => "another writer holds the database",
        Error::Unavailable(_) => "the database cannot be reached",
        Error::Failing(_) => FAILING,
        Error::Unusable(_) | Error::Damaged(_) => "the database is unusable: damaged, replaced, or without its tables",
        Error::Unique(_) | Error::ForeignKey(_) | Error::SecretKey(_) | Error::Other(_) => "the database refuses a write",
    }
}
