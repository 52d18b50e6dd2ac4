//! `counterpart serve`: serves the API until a signal stops it.

use std::{fs, os::unix::fs::PermissionsExt, sync::Arc};

use clap::Args;
use lettre::message::Mailbox;
use poem::http::HeaderValue;
use url::Url;

use super::{CliResult, Failed, print};
use crate::{
    app::{Addresses, App, ClientSettings, ServedDatabase, ToolSettings, open_served, report_secrets},
    assistant_tools::ToolPermissions,
    config::{Config, switch},
    delivery::{channel_connector::Connectors, channel_simulator::Simulator, sign_in_mails::Mailer},
    domain::clock::Clock,
    http::machinery::{
        cors::{self, Cors},
        rate_limits::{RateLimit, requests_per_second},
    },
    telemetry::metrics::Metrics,
};

#[derive(Args, Debug)]
pub struct Serve {
    #[command(flatten)]
    pub listen: Listen,

    /// A standby of the PostgreSQL database, `postgres://USER:PASSWORD@HOST/NAME`: read-only operations run there once the standby has
    /// replayed every commit of the store; API keys are looked up in the primary database
    #[arg(long, env = "COUNTERPART_READ_URL", hide_env_values = true, value_name = "URL")]
    read_url: Option<String>,

    /// Address and port that serve the metrics page, instead of the API's address [default: `/metrics` at the API's address]
    #[arg(long, env = "COUNTERPART_METRICS_LISTEN", value_name = "ADDRESS", value_parser = address)]
    metrics_listen: Option<String>,

    /// Rate limit: requests per second of each key, and refused keys per second of each client address [default: none]
    #[arg(long, env = "COUNTERPART_RATE_LIMIT", value_name = "N/s", value_parser = requests_per_second)]
    rate_limit: Option<u32>,

    /// Rate limit: requests per second of all keys of a store together [default: four times --rate-limit]
    #[arg(long, env = "COUNTERPART_STORE_RATE_LIMIT", value_name = "N/s", value_parser = requests_per_second, requires = "rate_limit")]
    store_rate_limit: Option<u32>,

    /// The base URL at which clients reach this server; the served OpenAPI documents contain it [default: the address of each request]
    #[arg(long, env = "COUNTERPART_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    public_url: Option<String>,

    /// An origin whose pages may call the API from a browser, such as `https://app.example.com`, or `*` for every origin; may be repeated
    #[arg(long, env = "COUNTERPART_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',', value_parser = cors::origin)]
    cors_origin: Vec<HeaderValue>,

    /// Deliver the messages of accounts without a bridge to a simulated channel; for development and tests
    #[arg(long, env = "COUNTERPART_SIMULATE_CHANNELS", value_parser = switch())]
    simulate_channels: bool,

    /// Serve a sandbox: a database whose clock can be advanced, for tests. A database without tables becomes a sandbox permanently; an
    /// ordinary database is refused
    #[arg(long, env = "COUNTERPART_SANDBOX", value_parser = switch())]
    sandbox: bool,

    /// Send links to the settings page by e-mail through this SMTP server: `smtps://USER:PASSWORD@HOST`, or `smtp://HOST:PORT`, with
    /// `?tls=required` for STARTTLS. A user asks for a link on the settings page, with the e-mail address that the store has for the user
    #[arg(
        long,
        env = "COUNTERPART_SMTP_URL",
        hide_env_values = true,
        value_name = "URL",
        requires_all = ["mail_from", "public_url"]
    )]
    smtp_url: Option<String>,

    /// The sender of e-mails, such as `Inbox <inbox@example.com>`
    #[arg(long, env = "COUNTERPART_MAIL_FROM", value_name = "MAILBOX", requires = "smtp_url")]
    mail_from: Option<Mailbox>,

    /// Also serve the assistant tools (Model Context Protocol) at `/mcp`; messages that assistants send become drafts
    #[arg(long, env = "COUNTERPART_MCP", value_parser = switch())]
    mcp: bool,

    /// Let assistants send messages to contacts. A client that can ask its user shows each message first
    #[arg(long, env = "COUNTERPART_MCP_ALLOW_SEND", value_parser = switch(), requires = "mcp")]
    mcp_allow_send: bool,
}

/// The listen address of a server.
#[derive(Args, Debug)]
pub struct Listen {
    /// Address and port; port 0 picks a free one
    #[arg(long, env = "COUNTERPART_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS", value_parser = address)]
    pub listen: String,
}

impl Serve {
    pub async fn run(self, config: &Config) -> CliResult {
        let metrics = Metrics::default();
        let ServedDatabase { mut db, clocks_and_ids, lock } = open_served(config, &metrics, self.sandbox).await?;
        if db.is_one_writer() {
            // Refuses to start on a SQLite file that is not writable, since it would not become writable by itself. PostgreSQL is not
            // checked: during a failover it refuses writes only for a while.
            db.prove_usable(clocks_and_ids.now()).await.map_err(|error| Failed(format!("the database cannot be used: {error}")))?;
        }
        report_secrets(&db).await?;
        report_modes(config);
        if let Some(url) = &self.read_url {
            db = db.with_replica(url, config.connections.get()).await?;
        }
        let connectors = if self.simulate_channels { Connectors::every(Arc::new(Simulator)) } else { Connectors::none() };
        let rate = self.rate_limit.map(|key| RateLimit::new(key, self.store_rate_limit));
        let cors = Cors::new(self.cors_origin);
        let mailer = match (&self.smtp_url, self.mail_from, &self.public_url) {
            (Some(url), Some(from), Some(public_url)) => {
                let unusable = |error| Failed(format!("`--smtp-url` cannot be used: {error}"));
                Some(Mailer::new(url, from, public_url.clone()).map_err(unusable)?)
            }
            _ => None,
        };
        let callers = ClientSettings {
            rate,
            bounds: config.bounds(),
            public_url: self.public_url,
            cors,
            connections: config.connections.get() as usize,
            mailer,
        };
        let sandbox_now = clocks_and_ids.sandbox.as_ref().map(|clock| clock.now());
        let app = App::new(db, clocks_and_ids, metrics, callers, connectors, config.targets(), config.index_folder()).await?;
        let mut app = app.with_metrics_at(self.metrics_listen);
        if self.mcp {
            app = app.with_tools(ToolSettings { permits: ToolPermissions { send: self.mcp_allow_send }, hosts: self.listen.hosts() });
        }
        let ready = |Addresses { url, metrics_url }: &Addresses| {
            print(&format!("listening on {url}"))?;
            metrics_url.as_ref().map_or(Ok(()), |url| print(&format!("metrics on {url}")))?;
            sandbox_now.map_or(Ok(()), |now| print(&format!("sandbox, whose clock shows {now}")))
        };
        let served = self.listen.serve(&app, ready).await;
        // Releases the lock of the sandbox, so that another server can serve the sandbox.
        drop(lock);
        served
    }
}

/// Checks that a text is an HTTP or HTTPS URL with a host.
pub(super) fn public_url(text: &str) -> Result<String, String> {
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(text.to_owned()),
        _ => Err(format!("`{text}` is not the URL of a server, such as https://api.example.com")),
    }
}

/// Checks the form of a host and a port, but not whether the host exists.
fn address(text: &str) -> Result<String, String> {
    let right = "such as 127.0.0.1:8080, or 0.0.0.0:8080 for every address of this machine";
    match text.rsplit_once(':') {
        Some(("", port)) => {
            Err(format!("`{text}` names no host; write 127.0.0.1:{port}, or 0.0.0.0:{port} for every address of this machine"))
        }
        Some((_, port)) if port.parse::<u16>().is_err() => Err(format!("`{port}` is no port; write a host and a port, {right}")),
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("`{text}` is not a host and a port, {right}")),
    }
}

impl Listen {
    /// Returns the host of the listen address, by which clients may reach the assistant tools. Returns no host if the server listens on
    /// every address of the machine, since the listen address then names no particular host.
    pub fn hosts(&self) -> Vec<String> {
        let host = self.listen.rsplit_once(':').map_or("", |(host, _)| host);
        if matches!(host, "0.0.0.0" | "[::]") { Vec::new() } else { vec![host.to_owned()] }
    }

    /// Serves until the process is asked to stop. `ready` is called with the addresses at which the server listens.
    pub async fn serve(&self, app: &App, ready: impl FnOnce(&Addresses) -> CliResult) -> CliResult {
        let mut stop = Box::pin(asked_to_stop()?);
        let served = app.serve(&self.listen, &mut stop, |addresses| {
            if let Err(Failed(reason)) = ready(&addresses) {
                tracing::warn!(reason, "the address could not be printed");
            }
        });
        served.await.map_err(|error| Failed(format!("cannot serve on {}: {error}", self.listen)))
    }
}

/// Warns about private files that other users of the machine may access. The server does not change the mode of existing files.
fn report_modes(config: &Config) {
    for path in config.private_files() {
        let mode = fs::metadata(&path).map_or(0, |meta| meta.permissions().mode());
        if mode & 0o077 != 0 {
            let (path, mode) = (path.display(), format!("{:o}", mode & 0o777));
            tracing::warn!(%path, mode, "other accounts of this machine may access this file or folder; `chmod go=` makes it private");
        }
    }
}

/// Returns a future that resolves on an interrupt or a termination signal.
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
