//! Logs and metrics. Logs go to standard error; metrics are read at `/metrics`.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};
use tracing_subscriber::{EnvFilter, filter::ParseError};

/// What no filter lets through: that of a driver tells the values of each statement, which are secrets and what people wrote.
const NO_VALUES: &str = "tokio_postgres=info";

/// Starts logging. `filter` in the syntax of tracing's `EnvFilter`.
///
/// # Errors
/// When `filter` cannot be read.
pub fn start_log(filter: &str) -> Result<(), ParseError> {
    tracing_subscriber::fmt().with_env_filter(without_values(filter)?).with_writer(std::io::stderr).init();
    Ok(())
}

fn without_values(filter: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(filter)?;
    // One for a part of the driver would count for more than what is added.
    let others: Vec<&str> = filter.split(',').filter(|one| !one.contains("tokio_postgres")).collect();
    Ok(EnvFilter::try_new(others.join(","))?.add_directive(NO_VALUES.parse()?))
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

/// What is counted.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    requests: Family<Labels, Counter>,
    durations: Family<Operation, Histogram>,
    statements: Counter,
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
        Self { registry: Arc::new(registry), requests, durations, statements }
    }
}

impl Metrics {
    /// Counts one answered request.
    pub fn request(&self, operation: &'static str, status: u16, took: Duration) {
        self.requests.get_or_create(&Labels { operation, status }).inc();
        self.durations.get_or_create(&Operation { operation }).observe(took.as_secs_f64());
    }

    /// What the database calls for each statement.
    pub fn on_statement(&self) -> Arc<dyn Fn() + Send + Sync> {
        let statements = self.statements.clone();
        Arc::new(move || {
            statements.inc();
        })
    }

    /// Everything, in the OpenMetrics text format.
    pub fn page(&self) -> String {
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
    fn no_filter_has_values_logged() {
        for filter in ["trace", "debug,tokio_postgres=trace", "tokio_postgres=debug", "trace,tokio_postgres::query=trace,info"] {
            let filter = without_values(filter).unwrap().to_string();
            assert!(filter.split(',').any(|one| one == NO_VALUES) && filter.matches("tokio_postgres").count() == 1, "{filter}");
        }
        assert_eq!(without_values("warn,counterpart=debug").unwrap().to_string(), "tokio_postgres=info,counterpart=debug,warn");
        assert!(without_values("warn,=nonsense=").is_err() && without_values("tokio_postgres=loud").is_err());
    }
}
