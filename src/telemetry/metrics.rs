//! Metrics in the OpenMetrics text format: counters, histograms and gauges of this process, and gauges of the database, which are read when
//! a client requests the metrics page.
//!
//! Processes that share a database show the same values in the gauges that are read from the database.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::{LostLines, process::Process};
use crate::domain::{
    delivery_outcome::{Backlogs, COUNT_LIMIT, DeliveryOutcome},
    time::Timestamp,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    operation: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Operation {
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TaskMetrics {
    task: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Attempt {
    queue: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QueueMetrics {
    queue: &'static str,
}

/// No labels: for a metric family with at most one time series. Unlike a single gauge, such a family can leave out an unknown value.
type NoLabels = [(&'static str, &'static str); 0];

/// The names of the two delivery queues: of messages to channels, and of events to webhooks.
pub const MESSAGES: &str = "messages";
pub const WEBHOOKS: &str = "webhooks";
/// The name of the queue of e-mails with sign-in links. This queue is in memory and has no gauges.
pub const MAILS: &str = "mails";

/// The metrics of one process.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Labels, Counter>,
    durations: Family<Operation, Histogram>,
    statements: Counter,
    restarts: Family<TaskMetrics, Counter>,
    failures: Family<TaskMetrics, Counter>,
    refused_log_copies: Counter,
    attempts: Family<Attempt, Counter>,
    waiting: Family<QueueMetrics, Gauge>,
    oldest: Family<QueueMetrics, Gauge>,
    disabled: Family<NoLabels, Gauge>,
    failing: Family<NoLabels, Gauge>,
    size: Family<NoLabels, Gauge>,
    unread: Counter,
    http_connections: Gauge,
    db_connections: Family<NoLabels, Gauge>,
    index_ready: Gauge,
    index_lag: Gauge<f64, AtomicU64>,
    index_bytes: Gauge,
    build: Family<[(&'static str, &'static str); 2], Gauge>,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// Upper bounds of the buckets of the request duration histogram, in seconds.
const SECONDS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];

impl Default for Metrics {
    fn default() -> Self {
        let mut root = Registry::default();
        root.register_collector(Box::new(Process));
        let registry = root.sub_registry_with_prefix("counterpart");
        let requests = Family::<Labels, Counter>::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let durations = Family::<Operation, Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        registry.register("http_request_duration_seconds", "Time to answer a request", durations.clone());
        let statements = Counter::default();
        registry.register("db_statements", "Statements sent to the database", statements.clone());
        let restarts = Family::<TaskMetrics, Counter>::default();
        registry.register("background_task_restarts", "Background tasks that ended and were started again", restarts.clone());
        let failures = Family::<TaskMetrics, Counter>::default();
        registry.register("background_task_failures", "Times that the work of a background task failed", failures.clone());
        let refused_log_copies = Counter::default();
        let help = "Times that the disk refused a checkpoint, the copy of the write-ahead log into a SQLite database";
        registry.register("db_log_copies_refused", help, refused_log_copies.clone());
        registry.register("log_lines_lost", "Log lines that could not be written", Counter::<u64, LostLines>::default());
        let attempts = Family::<Attempt, Counter>::default();
        registry.register("delivery_attempts", "Attempts to deliver a message or an event, by outcome", attempts.clone());
        let waiting = Family::<QueueMetrics, Gauge>::default();
        let help = format!("Messages or events that wait to be delivered, {COUNT_LIMIT} at most");
        registry.register("delivery_waiting", help, waiting.clone());
        let oldest = Family::<QueueMetrics, Gauge>::default();
        registry.register("delivery_oldest_waiting_seconds", "How long the oldest message or event has waited", oldest.clone());
        let disabled = Family::<NoLabels, Gauge>::default();
        registry.register("webhooks_disabled", "Webhooks that were disabled because their endpoints failed", disabled.clone());
        let failing = Family::<NoLabels, Gauge>::default();
        registry.register("webhooks_failing", "Webhooks whose last delivery failed", failing.clone());
        let size = Family::<NoLabels, Gauge>::default();
        registry.register("db_size_bytes", "Bytes of the database, on SQLite with its write-ahead log", size.clone());
        let unread = Counter::default();
        registry.register("db_gauges_unread", "Times that this page lacked the gauges that are read from the database", unread.clone());
        let http_connections = Gauge::default();
        registry.register("http_connections", "Open connections of clients", http_connections.clone());
        let db_connections = Family::<NoLabels, Gauge>::default();
        registry.register("db_connections", "Open connections to PostgreSQL", db_connections.clone());
        let index_ready = Gauge::default();
        registry.register("search_index_ready", "1 if the search index answers searches, else 0", index_ready.clone());
        let index_lag = Gauge::default();
        registry.register(
            "search_index_lag_seconds",
            "Seconds since the search index last contained every change of the database",
            index_lag.clone(),
        );
        let index_bytes = Gauge::default();
        registry.register("search_index_bytes", "Bytes of the search index on disk", index_bytes.clone());
        // The build information is a gauge, as in other programs: the text format of Prometheus has no info metrics.
        let build = Family::default();
        registry.register("build_info", "Version and API revision of this program, as labels", Family::clone(&build));
        Self {
            registry: Arc::new(root),
            requests,
            durations,
            statements,
            restarts,
            failures,
            refused_log_copies,
            attempts,
            waiting,
            oldest,
            disabled,
            failing,
            size,
            unread,
            http_connections,
            db_connections,
            index_ready,
            index_lag,
            index_bytes,
            build,
        }
    }
}

impl Metrics {
    /// Sets the gauge `build_info`: the version of this program, and the revision of the API that it serves.
    pub fn serves(&self, revision: &'static str) {
        self.build.get_or_create(&[("version", env!("CARGO_PKG_VERSION")), ("revision", revision)]).set(1);
    }

    /// Counts one answered request.
    pub fn request(&self, operation: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&Labels { operation, status }).inc();
        self.durations.get_or_create(&Operation { operation }).observe(took.as_secs_f64());
    }

    /// Counts the restart of a background task.
    pub fn task_restarted(&self, task: &'static str) {
        self.restarts.get_or_create(&TaskMetrics { task }).inc();
    }

    pub fn task_failed(&self, task: &'static str) {
        self.failures.get_or_create(&TaskMetrics { task }).inc();
    }

    /// Counts one attempt to deliver a message, an event or an e-mail.
    pub fn attempted(&self, queue: &'static str, outcome: DeliveryOutcome) {
        self.attempts.get_or_create(&Attempt { queue, outcome: outcome.name() }).inc();
    }

    /// Returns the callback that the database calls for each statement.
    pub fn on_statement(&self) -> Arc<dyn Fn() + Send + Sync> {
        let statements = self.statements.clone();
        Arc::new(move || {
            statements.inc();
        })
    }

    /// Sets the counter of failed checkpoints to `refused`, the number of times that the disk refused to sync the SQLite file after a
    /// checkpoint.
    pub fn refused_log_copies(&self, refused: u64) {
        self.refused_log_copies.inc_by(refused.saturating_sub(self.refused_log_copies.get()));
    }

    /// Sets the gauges that are read from the database. `None` means that the read failed: then the gauges are removed, so that no old
    /// value looks current.
    pub fn database(&self, read: Option<&Backlogs>, now: Timestamp) {
        let Some(read) = read else {
            self.waiting.clear();
            self.oldest.clear();
            for family in [&self.disabled, &self.failing, &self.size] {
                family.clear();
            }
            self.unread.inc();
            return;
        };
        for (queue, backlog) in [(MESSAGES, &read.messages), (WEBHOOKS, &read.events)] {
            self.waiting.get_or_create(&QueueMetrics { queue }).set(number(backlog.waiting));
            let oldest = backlog.oldest.map_or(0, |oldest| (now.millis() - oldest.millis()).max(0) / 1000);
            self.oldest.get_or_create(&QueueMetrics { queue }).set(oldest);
        }
        for (family, value) in [(&self.disabled, read.webhooks_disabled), (&self.failing, read.webhooks_failing), (&self.size, read.bytes)]
        {
            family.get_or_create(&[]).set(number(value));
        }
    }

    /// Returns the gauge of open client connections.
    pub fn http_connections(&self) -> Gauge {
        self.http_connections.clone()
    }

    /// Sets the gauge of open connections to PostgreSQL; `None`, for SQLite, leaves the gauge out.
    pub fn db_connections(&self, open: Option<u64>) {
        if let Some(open) = open {
            self.db_connections.get_or_create(&[]).set(number(open));
        }
    }

    /// Sets the state of the search index: for how long it has lacked committed changes, whether it can be searched, and its size in bytes.
    pub fn search_index(&self, lag: Duration, is_ready: bool, bytes: u64) {
        self.index_ready.set(is_ready.into());
        self.index_lag.set(lag.as_secs_f64());
        self.index_bytes.set(number(bytes));
    }

    /// Returns all metrics, in the OpenMetrics text format.
    pub fn page(&self) -> String {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    }
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
