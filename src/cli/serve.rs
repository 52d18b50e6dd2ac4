//! `counterpart serve`: the API, until it is told to stop.

use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

use clap::Args;

use super::{Failed, Outcome, print};
use crate::{
    app::{App, Limits, open_migrated, report_secrets},
    config::Config,
    delivery::{connector::Connectors, guard::Targets, simulator::Simulator},
    domain::clock::World,
    http::rate::{RateLimit, requests_per_second},
    telemetry::Metrics,
};

#[derive(Args, Debug)]
pub struct Serve {
    #[command(flatten)]
    pub listen: Listen,

    /// A standby of the PostgreSQL database, `postgres://USER:PASSWORD@HOST/NAME`: operations that only read run there once it
    /// shows everything that the store has committed; keys are looked up in the database itself
    #[arg(long, env = "COUNTERPART_READ_URL", hide_env_values = true, value_name = "URL")]
    read_url: Option<String>,

    /// Requests a second that each key may make, and refused keys that each address may send; without it there is no limit
    #[arg(long, env = "COUNTERPART_RATE_LIMIT", value_name = "N/s", value_parser = requests_per_second)]
    rate_limit: Option<u32>,

    /// Requests a second that all keys of a store may make together [default: four times --rate-limit]
    #[arg(long, env = "COUNTERPART_STORE_RATE_LIMIT", value_name = "N/s", value_parser = requests_per_second, requires = "rate_limit")]
    store_rate_limit: Option<u32>,

    /// Send to a simulated channel where an account has no bridge; for development and tests
    #[arg(long, env = "COUNTERPART_SIMULATE_CHANNELS")]
    simulate_channels: bool,

    /// Deliver to webhooks and bridges at private addresses too; for development and tests
    #[arg(long, env = "COUNTERPART_ALLOW_PRIVATE_TARGETS")]
    allow_private_targets: bool,
}

/// Where a server listens.
#[derive(Args, Debug)]
pub struct Listen {
    /// Address and port; port 0 takes a free one
    #[arg(long, env = "COUNTERPART_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub listen: String,
}

impl Serve {
    pub async fn run(self, config: &Config) -> Outcome {
        let metrics = Metrics::default();
        let (mut db, world) = (open_migrated(config, Some(&metrics)).await?, World::real());
        if db.is_one_writer() {
            // A file that cannot be written does not become one that can. PostgreSQL may be failing over.
            db.prove_writable(world.now()).await.map_err(|error| Failed(format!("the database takes no writes: {error}")))?;
        }
        report_secrets(&db).await?;
        report_modes(config);
        if let Some(url) = &self.read_url {
            db = db.with_replica(url, config.connections.get()).await?;
        }
        let connectors = if self.simulate_channels { Connectors::every(Arc::new(Simulator)) } else { Connectors::none() };
        let targets = if self.allow_private_targets { Targets::Any } else { Targets::Public };
        let rate = self.rate_limit.map(|key| RateLimit::new(key, self.store_rate_limit));
        let limits = Limits { rate, bounds: config.bounds(), connections: config.connections.get() as usize };
        let app = App::new(db, world, metrics, limits, connectors, targets, config.index_folder()).await?;
        self.listen.serve(&app, |url| print(&format!("listening on {url}"))).await
    }
}

impl Listen {
    /// Serves until the process is asked to stop. `ready` is told the base URL.
    pub async fn serve(&self, app: &App, ready: impl FnOnce(&str) -> Outcome) -> Outcome {
        let mut stop = Box::pin(asked_to_stop()?);
        let served = app.serve(&self.listen, &mut stop, |url| {
            if let Err(Failed(reason)) = ready(&url) {
                tracing::warn!(reason, "nobody was told the address");
            }
        });
        served.await.map_err(|error| Failed(format!("cannot serve on {}: {error}", self.listen)))
    }
}

/// Logs which private files other accounts of the machine may use: a file that was there keeps its mode.
fn report_modes(config: &Config) {
    for path in config.private_files() {
        let mode = fs::metadata(&path).map_or(0, |meta| meta.permissions().mode());
        if mode & 0o077 != 0 {
            let (path, mode) = (path.display(), format!("{:o}", mode & 0o777));
            tracing::warn!(%path, mode, "other accounts of this machine may use this file or folder; `chmod go=` keeps it for its owner");
        }
    }
}

/// Resolves on an interrupt or a termination signal.
fn asked_to_stop() -> Result<impl Future<Output = ()>, Failed> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping: requests in progress are finished");
    })
}
