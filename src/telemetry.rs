//! Logs and metrics. Logs go to standard error; [`metrics`] are read at `/metrics`.
//!
//! A log line that cannot be written is counted and dropped: standard error may be a file on a full disk, a closed pipe, or a pipe that
//! nothing reads. A separate thread writes the lines, so that no request waits for the reader of standard error.

pub mod metrics;
mod process;

use std::{
    io::{self, IsTerminal, Write},
    str::FromStr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use prometheus_client::metrics::counter::Atomic;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    EnvFilter,
    filter::{LevelFilter, ParseError},
};

use crate::config::LogFormat;

/// Directives that are added to every log filter: for each library that can log secrets or texts of people, the most verbose level at which
/// it logs neither. At more verbose levels, the PostgreSQL driver `tokio_postgres` logs the values of each statement, and `rmcp`, the
/// protocol library of the assistant tools, logs whole messages.
const LOG_LEVEL_CAPS: [(&str, &str); 2] = [("tokio_postgres", "info"), ("rmcp", "warn")];

/// The capacity of the queue of log lines. When the queue is full, new lines are dropped.
const LINES: usize = 8192;

/// The number of log lines that could not be written, and the counter of lines that were dropped because the queue was full.
static REFUSED_LINES: AtomicU64 = AtomicU64::new(0);
static DROPPED_LINES: OnceLock<ErrorCounter> = OnceLock::new();

/// Why a log filter is refused.
#[derive(Debug, thiserror::Error)]
pub enum BadFilter {
    #[error("`{0}` is no level; levels are error, warn, info, debug, trace and off, and `MODULE=LEVEL` sets the level of a module")]
    Level(String),
    #[error(transparent)]
    Syntax(#[from] ParseError),
}

/// Starts logging, panics included. `filter` has the syntax of tracing's `EnvFilter`. The lines are written until the guard is dropped.
///
/// # Errors
/// When `filter` cannot be parsed.
pub fn start_log(filter: &str, format: LogFormat) -> Result<WorkerGuard, BadFilter> {
    let filter = without_values(filter)?;
    let (lines, guard) = NonBlockingBuilder::default().buffered_lines_limit(LINES).finish(LossyWriter(io::stderr()));
    _ = DROPPED_LINES.set(lines.error_counter());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(lines).log_internal_errors(false);
    match format {
        // The JSON format never has colours, so they are not switched off here.
        LogFormat::Json => log.json().flatten_event(true).with_span_list(false).init(),
        LogFormat::Text if io::stderr().is_terminal() => log.init(),
        LogFormat::Text => log.with_ansi(false).init(),
    }
    // The panic hook of the standard library writes to standard error itself, and would wait if nothing reads standard error. This hook
    // logs the panic.
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

/// A writer that never fails: it counts the lines that it cannot write.
struct LossyWriter<W>(W);

impl<W: Write> Write for LossyWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.write_all(bytes).is_err() {
            REFUSED_LINES.fetch_add(1, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Standard error is unbuffered, so nothing is lost if the flush fails.
        _ = self.0.flush();
        Ok(())
    }
}

/// Finds a part of a log filter that is a single word but not a level. `EnvFilter` would read such a word as the name of a module, although
/// the user probably meant a level.
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
    // Directives that name a library of `LOG_LEVEL_CAPS` are removed from the filter. Otherwise a directive for a module of such a library,
    // such as `rmcp::service=trace`, would override the directive that is added below: `EnvFilter` prefers the more specific one.
    let others: Vec<&str> = filter.split(',').filter(|one| !LOG_LEVEL_CAPS.iter().any(|(library, _)| one.contains(library))).collect();
    LOG_LEVEL_CAPS.iter().try_fold(EnvFilter::try_new(others.join(","))?, |filter, (library, level)| {
        Ok(filter.add_directive(format!("{library}={level}").parse().map_err(BadFilter::Syntax)?))
    })
}

/// The number of log lines that were lost: refused by the output, or dropped because the queue was full.
#[derive(Debug, Default)]
pub(crate) struct LostLines;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_log_output_loses_only_its_lines_and_counts_them() {
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
        let mut output = LossyWriter(Full);
        assert_eq!(output.write(b"a line\n").unwrap(), 7);
        output.flush().unwrap();
        assert!(LostLines.get() > before);
        assert!(metrics::Metrics::default().page().contains("counterpart_log_lines_lost_total"));
    }

    #[test]
    fn no_log_filter_makes_libraries_log_values() {
        for (library, level) in LOG_LEVEL_CAPS {
            let directive = format!("{library}={level}");
            for filter in ["trace", "debug,LIBRARY=trace", "LIBRARY=debug", "trace,LIBRARY::query=trace,info"] {
                let filter = without_values(&filter.replace("LIBRARY", library)).unwrap().to_string();
                assert!(filter.split(',').any(|one| one == directive) && filter.matches(library).count() == 1, "{filter}");
            }
        }
        assert_eq!(without_values("warn,counterpart=debug").unwrap().to_string(), "tokio_postgres=info,counterpart=debug,rmcp=warn,warn");
        assert!(without_values("warn,=nonsense=").is_err() && without_values("tokio_postgres=loud").is_err());
    }
}
