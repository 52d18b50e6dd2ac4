//! Logs and metrics. Logs go to standard error; metrics are read at `/metrics`.
//!
//! A log line that cannot be written is counted and forgotten: standard error may be a full disk, a closed pipe, or a pipe that
//! nothing reads. A thread of its own writes the lines, so that no request waits for whatever reads them.

use std::{
    io::{self, IsTerminal, Write},
    str::FromStr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use clap::ValueEnum;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{
        counter::{Atomic, Counter},
        family::Family,
        histogram::Histogram,
    },
    registry::Registry,
};
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    EnvFilter,
    filter::{LevelFilter, ParseError},
};

/// What no filter lets through: that of a driver tells the values of each statement, which are secrets and what people wrote.
const NO_VALUES: &str = "tokio_postgres=info";

/// Lines that wait to be written, at most; beyond it the newest are dropped.
const LINES: usize = 8192;

/// Log lines that could not be written, and those that found no room in the queue.
static REFUSED_LINES: AtomicU64 = AtomicU64::new(0);
static DROPPED_LINES: OnceLock<ErrorCounter> = OnceLock::new();

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people; in colour on a terminal alone
    Text,
    /// An object a line
    Json,
}

/// Why a log filter is refused.
#[derive(Debug, thiserror::Error)]
pub enum BadFilter {
    #[error("`{0}` is no level; levels are error, warn, info, debug, trace and off, and `MODULE=LEVEL` sets that of a module")]
    Level(String),
    #[error(transparent)]
    Syntax(#[from] ParseError),
}

/// Starts logging, panics included. `filter` in the syntax of tracing's `EnvFilter`. The lines are written until the guard is dropped.
///
/// # Errors
/// When `filter` cannot be read.
pub fn start_log(filter: &str, format: LogFormat) -> Result<WorkerGuard, BadFilter> {
    let filter = without_values(filter)?;
    let (lines, guard) = NonBlockingBuilder::default().buffered_lines_limit(LINES).finish(Forgiving(io::stderr()));
    _ = DROPPED_LINES.set(lines.error_counter());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines).log_internal_errors(false);
    match format {
        // A line of JSON has no colours in it.
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).with_span_list(false).init(),
        LogFormat::Text if io::stderr().is_terminal() => log.init(),
        LogFormat::Text => log.with_ansi(false).init(),
    }
    // The hook of the standard library waits for standard error.
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!(location = panic.location().map(ToString::to_string), %backtrace, "panicked: {}", text_of(panic.payload()));
    }));
    Ok(guard)
}

fn text_of(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}

/// An output that never fails: what cannot be written is counted.
struct Forgiving<W>(W);

impl<W: Write> Write for Forgiving<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.write_all(bytes).is_err() {
            REFUSED_LINES.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // What is written to standard error is not buffered.
        _ = self.0.flush();
        Ok(())
    }
}

/// A part of a filter that is taken for the name of a module, and was meant to be a level.
fn misspelt_level(filter: &str) -> Option<&str> {
    let parts = filter.split(',').map(str::trim);
    let is_bare = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric());
    parts.filter(is_bare).find(|part| LevelFilter::from_str(part).is_err())
}

fn without_values(filter: &str) -> Result<EnvFilter, BadFilter> {
    if let Some(word) = misspelt_level(filter) {
        return Err(BadFilter::Level(word.to_owned()));
    }
    EnvFilter::try_new(filter)?;
    // One for a part of the driver would count for more than what is added.
    let others: Vec<&str> = filter.split(',').filter(|one| !one.contains("tokio_postgres")).collect();
    Ok(EnvFilter::try_new(others.join(","))?.add_directive(NO_VALUES.parse().map_err(BadFilter::Syntax)?))
}

/// The number of log lines that were lost: refused by the output, or dropped from a full queue.
#[derive(Debug, Default)]
struct LostLines;

impl Atomic<u64> for LostLines {
    fn inc(&self) -> u64 {
        self.inc_by(1)
    }

    fn inc_by(&self, lines: u64) -> u64 {
        REFUSED_LINES.fetch_add(lines, Ordering::Relaxed)
    }

    fn get(&self) -> u64 {
        REFUSED_LINES.load(Ordering::Relaxed) + DROPPED_LINES.get().map_or(0, |dropped| dropped.dropped_lines() as u64)
    }
}

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
struct Task {
    task: &'static str,
}

/// What is counted.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Labels, Counter>,
    durations: Family<Operation, Histogram>,
    statements: Counter,
    restarts: Family<Task, Counter>,
    failures: Family<Task, Counter>,
    refused_log_copies: Counter,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// Bounds of the duration histogram, in seconds.
const SECONDS: [f64; 11] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("counterpart");
        let requests = Family::<Labels, Counter>::default();
        registry.register("http_requests", "Requests answered", requests.clone());
        let durations = Family::<Operation, Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        registry.register("http_request_duration_seconds", "Time to answer", durations.clone());
        let statements = Counter::default();
        registry.register("db_statements", "Statements sent to the database", statements.clone());
        let restarts = Family::<Task, Counter>::default();
        registry.register("background_task_restarts", "Background tasks that ended and were started again", restarts.clone());
        let failures = Family::<Task, Counter>::default();
        registry.register("background_task_failures", "Times that the work of a background task failed", failures.clone());
        let refused_log_copies = Counter::default();
        let help = "Times that the disk refused what the log of a SQLite database was copied to";
        registry.register("db_log_copies_refused", help, refused_log_copies.clone());
        registry.register("log_lines_lost", "Log lines that could not be written", Counter::<u64, LostLines>::default());
        Self { registry: Arc::new(registry), requests, durations, statements, restarts, failures, refused_log_copies }
    }
}

impl Metrics {
    /// Counts one answered request.
    pub fn request(&self, operation: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&Labels { operation, status }).inc();
        self.durations.get_or_create(&Operation { operation }).observe(took.as_secs_f64());
    }

    /// Counts the restart of a background task.
    pub fn task_restarted(&self, task: &'static str) {
        self.restarts.get_or_create(&Task { task }).inc();
    }

    pub fn task_failed(&self, task: &'static str) {
        self.failures.get_or_create(&Task { task }).inc();
    }

    /// What the database calls for each statement.
    pub fn on_statement(&self) -> Arc<dyn Fn() + Send + Sync> {
        let statements = self.statements.clone();
        Arc::new(move || {
            statements.inc();
        })
    }

    /// Everything, in the OpenMetrics text format; with what the database has counted itself.
    pub fn page(&self, refused_log_copies: u64) -> String {
        self.refused_log_copies.inc_by(refused_log_copies.saturating_sub(self.refused_log_copies.get()));
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => text,
            Err(error) => format!("# {error}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_fails_costs_its_lines_alone() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let before = LostLines.get();
        let mut output = Forgiving(Full);
        assert_eq!(output.write(b"a line\n").unwrap(), 7);
        output.flush().unwrap();
        assert!(LostLines.get() > before);
        assert!(Metrics::default().page(0).contains("counterpart_log_lines_lost_total"));
    }

    #[test]
    fn no_filter_has_values_logged() {
        for filter in ["trace", "debug,tokio_postgres=trace", "tokio_postgres=debug", "trace,tokio_postgres::query=trace,info"] {
            let filter = without_values(filter).unwrap().to_string();
            assert!(filter.split(',').any(|one| one == NO_VALUES) && filter.matches("tokio_postgres").count() == 1, "{filter}");
        }
        assert_eq!(without_values("warn,counterpart=debug").unwrap().to_string(), "tokio_postgres=info,counterpart=debug,warn");
        assert!(without_values("warn,=nonsense=").is_err() && without_values("tokio_postgres=loud").is_err());
    }
}
