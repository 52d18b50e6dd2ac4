//! Composition root: assembles the parts of one process, and runs its servers and background tasks. [`database`] opens the database.

mod database;
mod maintenance_jobs;
mod probes_and_metrics;

use std::{future::Future, io, path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::{OptionFuture, join_all};
use poem::{Endpoint, EndpointExt, IntoEndpoint, Response, Route, Server, endpoint::make_sync, get, http::StatusCode, listener::Acceptor};
use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    runtime::Handle,
    sync::{Mutex, watch},
    task::JoinHandle,
};
use url::Url;

use self::{
    maintenance_jobs::run_maintenance_jobs,
    probes_and_metrics::{METRICS, healthz, metrics_page, readyz},
};
use crate::{
    assistant_tools::{self, Api, CallerLimits, HttpTools, ToolPermissions, ToolServer},
    delivery::{
        channel_connector::Connectors,
        outbound::Messages,
        sign_in_mails::{Mailer, SignInMails},
        webhooks::WebhookQueue,
        worker::Worker,
    },
    domain::{clock::ClocksAndIds, settings_access::StoreLimits, ssrf_policy::Targets},
    http::{
        events::{self, WireEvents},
        machinery::{
            connection_timeouts,
            cors::Cors,
            cursor::Seal,
            fair_share::FairScheduler,
            long_poll::LongPolls,
            middleware::{InnerEndpoints, Middleware},
            rate_limits::RateLimit,
            routing::{Operations, PREFIX, SETTINGS_PREFIX},
            shared_state::SharedState,
            sign_in_link_requests::SignInRequests,
            unsent_response_limits::UnsentResponses,
        },
        openapi::contract_document,
        pages::{contract_changes, guide_page, guides::GUIDES, home, layout, reference, settings_page, static_content::Download},
        settings,
    },
    readiness::Readiness,
    revision,
    search::SearchService,
    service::{
        self, Service,
        sandbox_clock::{DrainOrders, Sandbox},
    },
    store::Db,
    supervisor::Supervisor,
    telemetry::metrics::{MAILS, MESSAGES, Metrics, WEBHOOKS},
};

pub use database::{ServedDatabase, open, open_migrated, open_served, report_secrets};

/// The assembled parts of one server process.
#[derive(Clone)]
pub struct App {
    state: Arc<SharedState>,
    connectors: Connectors,
    targets: Targets,
    searches: SearchService,
    supervisor: Supervisor,
    readiness: Readiness,
    public_url: Option<String>,
    cors: Cors,
    /// Absent: the metrics page is served at the main address.
    metrics_listen: Option<String>,
    /// Absent: the assistant tools are not served.
    tools: Option<ToolSettings>,
    /// Absent: the server sends no e-mail.
    mails: Option<SignInMails>,
    /// Present if the database is a sandbox (a test database whose clock can be advanced). The two channels tell the delivery workers to
    /// make all due deliveries: the first channel is for the worker of messages, the second for the worker of webhooks.
    orders: Option<[DrainOrders; 2]>,
}

/// How the assistant tools (MCP tools, which AI assistants call) are served over HTTP.
#[derive(Clone, Debug)]
pub struct ToolSettings {
    pub permits: ToolPermissions,
    /// Host names by which clients may reach the server, in addition to that of `public_url` and to the names of the local machine.
    pub hosts: Vec<String>,
}

/// Settings about serving clients: limits, CORS, the public address of this server, read connections to PostgreSQL, and e-mail.
#[derive(Debug, Default)]
pub struct ClientSettings {
    /// Limits on the rate of requests. Absent: the rate is not limited.
    pub rate: Option<RateLimit>,
    pub bounds: StoreLimits,
    /// The base URL for clients. Absent: clients are given the address to which they sent their request.
    pub public_url: Option<String>,
    pub cors: Cors,
    /// The maximum number of connections to PostgreSQL for reads.
    pub connections: usize,
    /// Absent: the server sends no e-mail.
    pub mailer: Option<Mailer>,
}

/// How long requests in progress may take once the server was asked to stop. After that, background tasks get the same time to finish.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// How long a background task may report nothing before it counts as hung. `WORKER_SILENCE` is for a delivery worker, whose longest wait
/// is for the database. `LONG_SILENCE` is for a task that reads or writes more at a time.
const WORKER_SILENCE: Duration = Duration::from_secs(60);
const LONG_SILENCE: Duration = Duration::from_secs(600);

/// Makes the service that implements the use cases. It serialises events in the format of the API revision (A or B) that this build serves.
pub fn service(db: Db, clocks_and_ids: ClocksAndIds) -> Service {
    Service::new(db, clocks_and_ids, revision::RULES, Arc::new(WireEvents))
}

/// Returns the id by which the search index distinguishes this database from others.
pub async fn database_id(service: &Service) -> service::Result<String> {
    let secret = service.server_secret("search").await?;
    Ok(secret.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

impl App {
    /// Makes the application on an open and migrated database, with its search index in the folder `index`.
    pub async fn new(
        db: Db,
        clocks_and_ids: ClocksAndIds,
        metrics: Metrics,
        callers: ClientSettings,
        connectors: Connectors,
        targets: Targets,
        index: PathBuf,
    ) -> service::Result<Self> {
        let (sandbox, orders) = match clocks_and_ids.sandbox.clone() {
            Some(clock) => {
                let (sandbox, orders) = Sandbox::new(clock, db.sandbox_ahead().await?.unwrap_or_default());
                (Some(sandbox), Some(orders))
            }
            None => (None, None),
        };
        let service = service(db.clone(), clocks_and_ids).bounded_by(callers.bounds).delivering_to(targets).in_sandbox(sandbox);
        let searches = SearchService::new(db, index, database_id(&service).await?);
        let service = service.searched_by(searches.clone());
        metrics.serves(revision::NAME);
        let seal = Seal::new(&service.server_secret("cursor").await?);
        let replica = service.db().has_replica().then(|| service.on_replica());
        let supervisor = Supervisor::new(metrics.clone());
        let readiness = Readiness::new(service.clone(), supervisor.clone());
        // The share is the number of expensive statements of one store that may run at the same time. On SQLite each read occupies a
        // thread, so a store may use all threads but one. On PostgreSQL half of the read connections are for statements that may take long,
        // such as pages of lists. One store may use half of these connections.
        let share = if service.db().is_one_writer() { Handle::current().metrics().num_workers() - 1 } else { callers.connections / 4 };
        let turns = FairScheduler::new(share);
        let (sign_in_requests, mails) = callers.mailer.map_or((None, None), |mailer| {
            let ((requests, queue), metrics) = (SignInRequests::new(), metrics.clone());
            let on_outcome = Arc::new(move |outcome| metrics.attempted(MAILS, outcome));
            let mails = SignInMails { service: service.clone(), mailer, requests: Arc::new(Mutex::new(queue)), on_outcome };
            (Some(requests), Some(mails))
        });
        let state = Arc::new(SharedState {
            service,
            replica,
            seal,
            metrics,
            rate: callers.rate,
            under_way: UnsentResponses::default(),
            turns,
            long_polls: LongPolls::default(),
            sign_in_requests,
        });
        let ClientSettings { public_url, cors, .. } = callers;
        Ok(Self {
            state,
            connectors,
            targets,
            searches,
            supervisor,
            readiness,
            public_url,
            cors,
            metrics_listen: None,
            tools: None,
            mails,
            orders,
        })
    }

    /// Returns the application with the assistant tools, which it serves over HTTP at [`assistant_tools::PATH`].
    #[must_use]
    pub fn with_tools(self, settings: ToolSettings) -> Self {
        Self { tools: Some(settings), ..self }
    }

    /// Sets a separate address for the metrics page, which is then served only there. `None` keeps it at the main address.
    #[must_use]
    pub fn with_metrics_at(self, metrics_listen: Option<String>) -> Self {
        Self { metrics_listen, ..self }
    }

    /// Returns the endpoint with all pages and operations.
    pub fn endpoint(&self) -> impl Endpoint<Output = Response> + 'static {
        let address = &self.public_url;
        let mut route = Route::new()
            .at("/", get(home::page(revision::NAME)))
            .at("/favicon.ico", get(home::icon()))
            .at("/docs", get(reference::download("/docs", PREFIX, contract_document::document)))
            .at("/docs/changes", get(contract_changes::page()))
            .at("/docs/changes/events", get(contract_changes::events_page()))
            .at(contract_changes::SCRIPT, get(contract_changes::script()))
            .at(layout::STYLE, get(layout::style()))
            .at(layout::SCRIPT, get(layout::script()))
            .at("/openapi.yaml", get(Download::yaml(contract_document::document, address.clone())))
            .at("/openapi.json", get(Download::json(contract_document::document, address.clone())))
            .at("/openapi-3.1.json", get(Download::json(events::openapi_document::with_operations, address.clone())))
            .at(
                "/openapi-events.json",
                get(Download::text("application/json", || contract_document::json(&events::openapi_document::document()))),
            )
            .at("/healthz", get(healthz))
            .at("/readyz", get(readyz))
            .at("/settings/docs", get(reference::download("/settings/docs", SETTINGS_PREFIX, settings::document)))
            .at("/settings/openapi.json", get(Download::json(settings::document, address.clone())));
        for guide in &GUIDES {
            route = route.at(guide.path(), get(guide_page::download(guide)));
        }
        if self.metrics_listen.is_none() {
            route = route.at(METRICS, self.metrics());
        }
        for (path, file) in settings_page::downloads(self.mails.is_some()) {
            route = route.at(path, get(file));
        }
        let mut operations = contract_operations();
        operations.add(settings::settings_operations());
        if let Some(settings) = &self.tools {
            operations.at(assistant_tools::PATH, settings.permits.methods(), self.http_tools(settings));
        }
        let pages = route.data(self.readiness.clone()).data(self.state.clone()).map_to_response().boxed();
        Middleware { served: InnerEndpoints { operations, pages }, state: self.state.clone(), cors: self.cors.clone() }
    }

    /// Makes the endpoint that serves the assistant tools over HTTP.
    fn http_tools(&self, ToolSettings { permits, hosts }: &ToolSettings) -> HttpTools {
        let public = self.public_url.as_deref().and_then(|url| Url::parse(url).ok());
        let local = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let named = public.as_ref().and_then(Url::host_str).map(str::to_owned);
        let hosts = local.into_iter().chain(hosts.iter().cloned()).chain(named).collect();
        let origins = public.map(|url| url.origin().ascii_serialization()).into_iter().chain(self.cors.named()).collect();
        let server = ToolServer::of_requests(self.api(), self.state.service.clone(), *permits);
        HttpTools::new(server, *permits, hosts, origins)
    }

    /// Makes the assistant tools for the holder of one API key. They are for a transport other than HTTP, such as standard input and
    /// output.
    pub fn tools_of_key(&self, key: String, permits: ToolPermissions, narrowing: CallerLimits) -> ToolServer {
        ToolServer::of_key(self.api(), self.state.service.clone(), permits, key, narrowing)
    }

    /// Returns whether an API key is valid.
    pub async fn knows_key(&self, key: &str) -> service::Result<bool> {
        Ok(self.state.service.authenticate(key).await?.is_some())
    }

    /// Returns the operations of the API contract, for callers in this process.
    fn api(&self) -> Api {
        let nothing = make_sync(|_| StatusCode::NOT_FOUND).map_to_response().boxed();
        let served = InnerEndpoints { operations: contract_operations(), pages: nothing };
        Api::new(Middleware { served, state: self.state.clone(), cors: Cors::default() }.boxed())
    }

    fn metrics(&self) -> impl IntoEndpoint<Endpoint: 'static> + use<> {
        get(metrics_page).data(self.state.clone()).data(self.searches.clone())
    }

    /// Starts the search service alone, in a background task that runs until the sender of `stop` is dropped.
    pub fn follow_changes(&self, stop: &watch::Receiver<()>) -> JoinHandle<()> {
        let (searches, stopped) = (self.searches.clone(), stop.clone());
        self.supervisor.run("search index", LONG_SILENCE, stop.clone(), move |reporter| {
            let mut stopped = stopped.clone();
            searches.clone().run(async move { _ = stopped.changed().await }, reporter)
        })
    }

    /// Saves to the database the time of the last use of each API key, which until then is only in memory. Then it closes the database.
    pub async fn close(&self) -> service::Result<()> {
        let service = &self.state.service;
        service.save_key_uses().await?;
        Ok(service.db().clone().close().await?)
    }

    /// For tests without a server: starts tasks that replace the delivery workers of the sandbox. They report each queue as drained.
    #[cfg(test)]
    pub fn rest(&self) {
        for orders in self.orders.iter().flatten() {
            let orders = orders.clone();
            tokio::spawn(async move {
                while let Some(order) = orders.lock().await.recv().await {
                    if let DrainOrder::Drain { done, .. } = order {
                        _ = done.send(Ok(Attempts::new()));
                    }
                }
            });
        }
    }

    /// Runs only the search service, for tests without a server.
    #[cfg(test)]
    pub async fn follow(self) {
        self.searches.run(std::future::pending(), crate::supervisor::TaskReporter::unheard()).await;
    }

    /// Serves requests and runs the background tasks until `stop` resolves. Then it waits for the work in progress, for a limited time, and
    /// closes the database. `ready` is called with the addresses of the server as soon as it is bound to them.
    pub async fn serve(&self, listen: &str, stop: impl Future<Output = ()>, ready: impl FnOnce(Addresses)) -> io::Result<()> {
        let acceptor = connection_timeouts::listen(listen, self.state.metrics.http_connections()).await?;
        // Dropping `stop_workers` stops the background tasks and the metrics page.
        let (stop_workers, stopped) = watch::channel(());
        let (metrics_url, metrics) = self.serve_metrics(stopped.clone()).await?.unzip();
        ready(Addresses { url: url_of(&acceptor, listen), metrics_url });
        let workers = self.start(&stopped)?;
        let serving = async {
            let server = Server::new_with_acceptor(acceptor).name("counterpart");
            let stop = async {
                stop.await;
                self.state.long_polls.stop();
            };
            let served = server.run_with_graceful_shutdown(self.endpoint(), stop, Some(SHUTDOWN_GRACE)).await;
            drop(stop_workers);
            served
        };
        let (served, _) = tokio::join!(serving, OptionFuture::from(metrics));
        match tokio::time::timeout(SHUTDOWN_GRACE, join_all(workers)).await {
            Ok(ended) => ended.into_iter().collect::<Result<(), _>>().map_err(io::Error::other)?,
            Err(_) => tracing::warn!("deliveries were going on when the time was up; they are made again after the next start"),
        }
        served?;
        self.state.service.db().clone().close().await.map_err(io::Error::other)
    }
}

fn contract_operations() -> Operations {
    let mut operations = Operations::default();
    operations.add(contract_document::contract());
    operations
}

/// The addresses at which a process is reachable.
#[derive(Debug)]
pub struct Addresses {
    pub url: String,
    /// Absent: the metrics page is served at the main address.
    pub metrics_url: Option<String>,
}

fn url_of(acceptor: &impl Acceptor, listen: &str) -> String {
    let bound = acceptor.local_addr().into_iter().find_map(|address| address.as_socket_addr().map(ToString::to_string));
    format!("http://{}", bound.unwrap_or_else(|| listen.to_owned()))
}

impl App {
    /// Returns the separate address of the metrics page, and the future that serves the page there until the sender of `stop` is dropped.
    /// Returns `None` if the page has no separate address.
    async fn serve_metrics(&self, mut stop: watch::Receiver<()>) -> io::Result<Option<(String, impl Future<Output = io::Result<()>>)>> {
        let Some(listen) = &self.metrics_listen else { return Ok(None) };
        let acceptor = connection_timeouts::listen(listen, Gauge::default()).await;
        let acceptor = acceptor.map_err(|error| io::Error::other(format!("the metrics page cannot be served on {listen}: {error}")))?;
        let (url, page) = (format!("{}{METRICS}", url_of(&acceptor, listen)), Route::new().at(METRICS, self.metrics()));
        let stopped = async move { _ = stop.changed().await };
        Ok(Some((url, Server::new_with_acceptor(acceptor).run_with_graceful_shutdown(page, stopped, Some(Duration::ZERO)))))
    }

    /// Starts the background tasks: deliveries to channels and to webhooks, e-mails, the maintenance jobs, and the
    /// updates of the search index.
    fn start(&self, stop: &watch::Receiver<()>) -> io::Result<Vec<JoinHandle<()>>> {
        let stopped = || {
            let stop = stop.clone();
            move || {
                let mut stop = stop.clone();
                async move { _ = stop.changed().await }
            }
        };
        let (service, supervisor) = (&self.state.service, &self.supervisor);
        let messages = Messages::new(service.clone(), self.connectors.clone(), self.targets).map_err(io::Error::other)?;
        let webhooks = WebhookQueue::new(service.clone(), self.targets).map_err(io::Error::other)?;
        let counted = |queue| {
            let metrics = self.state.metrics.clone();
            Arc::new(move |outcome| metrics.attempted(queue, outcome))
        };
        let (messages, webhooks) = (messages.counted_by(counted(MESSAGES)), webhooks.counted_by(counted(WEBHOOKS)));
        let [message_orders, webhook_orders] = self.orders.clone().map_or([None, None], |orders| orders.map(Some));
        let (searches, chored) = (self.searches.clone(), service.clone());
        let (a, b, c, d) = (stopped(), stopped(), stopped(), stopped());
        let mut tasks = vec![
            supervisor.run("delivery to channels", WORKER_SILENCE, stop.clone(), move |reporter| {
                Worker::new(messages.clone()).ordered_by(message_orders.clone()).run(a(), reporter)
            }),
            supervisor.run("delivery to webhooks", WORKER_SILENCE, stop.clone(), move |reporter| {
                Worker::new(webhooks.clone()).ordered_by(webhook_orders.clone()).run(b(), reporter)
            }),
            supervisor.run("maintenance", LONG_SILENCE, stop.clone(), move |reporter| run_maintenance_jobs(chored.clone(), c(), reporter)),
            supervisor.run("search index", LONG_SILENCE, stop.clone(), move |reporter| searches.clone().run(d(), reporter)),
        ];
        if let Some(mails) = self.mails.clone() {
            let stopped = stopped();
            tasks.push(supervisor.run("e-mail", LONG_SILENCE, stop.clone(), move |reporter| mails.clone().run(stopped(), reporter)));
        }
        Ok(tasks)
    }
}

#[cfg(test)]
use crate::service::sandbox_clock::{Attempts, DrainOrder};

#[cfg(test)]
mod readiness_tests;
#[cfg(test)]
mod sandbox_tests;
#[cfg(test)]
mod signed_inbound_tests;
