//! The context of one request: its id, its time of arrival (API contract, section 2.1), its caller once the request is authenticated, and
//! its permit to run expensive statements (`fair_share`).

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use poem::http::HeaderMap;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{block_in_place, yield_now},
};

use super::{envelope_schema::REQUEST_ID, fair_share::StorePermit};
use crate::domain::{
    clock::ClocksAndIds,
    ids::{AccountId, KeyId, StoreId, UserId},
    revision_rules::ReceivedAt,
    time::Timestamp,
};

/// The context of one request, which lives as long as the request. Clones share one state.
#[derive(Clone, Debug)]
pub struct Context(Arc<ContextState>);

#[derive(Debug)]
struct ContextState {
    request_id: String,
    received_at: Timestamp,
    received_at_form: ReceivedAt,
    caller: OnceLock<Authenticated>,
    turn: OnceLock<StorePermit>,
    /// Whether the request is a long poll, which may wait for records (`long_poll`).
    may_wait: AtomicBool,
    /// For how many milliseconds in total the request has waited for records (`long_poll`).
    waited: AtomicU64,
}

/// The result of the authentication of a request.
#[derive(Debug)]
struct Authenticated {
    recipient: Recipient,
    key_name: Option<String>,
    /// Whether the request only reads, so that the client can repeat it if its response is replaced by an error (`unsent_response_limits`).
    repeatable: bool,
}

/// The authenticated caller of a request, who is the recipient of the response. Unsent bytes of responses are counted for each caller
/// (`unsent_response_limits`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Recipient {
    /// An API key.
    Key(StoreId, KeyId),
    /// A user of the settings API.
    Manager(StoreId, UserId),
    /// The bridge of a channel account: an external program that connects the account to its channel.
    Bridge(StoreId, AccountId),
}

impl Context {
    /// Makes the context of a new request. The request id is the one that the client sent, if it has 1 to 128 visible ASCII characters;
    /// otherwise a new id is generated.
    pub fn arrive(headers: &HeaderMap, clocks_and_ids: &ClocksAndIds, received_at_form: ReceivedAt) -> Self {
        let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let request_id = match given {
            Some(id) if (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) => id.to_owned(),
            _ => clocks_and_ids.ids.fresh(),
        };
        Self(Arc::new(ContextState {
            request_id,
            received_at: clocks_and_ids.now(),
            received_at_form,
            caller: OnceLock::new(),
            turn: OnceLock::new(),
            may_wait: AtomicBool::new(false),
            waited: AtomicU64::new(0),
        }))
    }

    pub fn request_id(&self) -> &str {
        &self.0.request_id
    }

    pub fn received_at(&self) -> Timestamp {
        self.0.received_at
    }

    /// Returns the time of arrival as text, for the property `requestReceivedAt` of the response. The format depends on the requested API
    /// (contract or settings API).
    pub fn received_at_text(&self) -> String {
        match self.0.received_at_form {
            ReceivedAt::Timestamp => self.0.received_at.to_string(),
            ReceivedAt::UnixMillis => self.0.received_at.millis().to_string(),
        }
    }

    /// Records the caller. Called once, by authentication. `repeatable` means that the request only reads. After such a request, the server
    /// may replace the response by an error if too many bytes are unsent (`unsent_response_limits`), since the client can repeat the
    /// request.
    pub fn authenticated(&self, recipient: Recipient, key_name: Option<String>, repeatable: bool) {
        // `set` fails only if the caller is recorded already, and a request has only one caller.
        let _ = self.0.caller.set(Authenticated { recipient, key_name, repeatable });
    }

    /// Returns the caller, once the request is authenticated.
    pub fn recipient(&self) -> Option<&Recipient> {
        self.0.caller.get().map(|known| &known.recipient)
    }

    /// Returns the name of the API key; `None` for a request without an API key.
    pub fn key_name(&self) -> Option<&str> {
        self.0.caller.get()?.key_name.as_deref()
    }

    /// Keeps the permit `turn` until the request ends.
    pub async fn begin(&self, turn: StorePermit) {
        // A request has one permit; a second one would be dropped immediately.
        let _ = self.0.turn.set(turn);
        if self.may_be_long() {
            // Returns control to [`Self::beside`], which polls this request. `beside` now moves the rest of the request to a thread that
            // serves no other request.
            yield_now().await;
        }
    }

    /// Returns whether the request has a permit and its response may be long.
    pub fn may_be_long(&self) -> bool {
        self.0.turn.get().is_some_and(StorePermit::is_alone)
    }

    /// Runs `work`, the future that handles the request. If the request gets a permit and its response may be long, the rest of `work` runs
    /// on a thread that serves no other request, since a long response keeps a thread busy. In a runtime with only one thread, `work` stays
    /// on that thread.
    pub async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let begun = poll_fn(|task| match work.as_mut().poll(task) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.may_be_long() && has_threads() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        match begun.await {
            Some(done) => done,
            None => block_in_place(|| Handle::current().block_on(work)),
        }
    }

    /// Records that the request is a long poll, which may wait for records (`long_poll`).
    pub fn may_wait(&self) {
        self.0.may_wait.store(true, Ordering::Relaxed);
    }

    /// Returns whether the request may wait, that is, whether [`Self::may_wait`] was called.
    pub fn is_waiting(&self) -> bool {
        self.0.may_wait.load(Ordering::Relaxed)
    }

    /// Adds `time` to the total time that the request has waited.
    pub fn waited(&self, time: Duration) {
        self.0.waited.fetch_add(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the time that the request has waited.
    pub fn waiting_time(&self) -> Duration {
        Duration::from_millis(self.0.waited.load(Ordering::Relaxed))
    }

    /// Reports to the request's permit, if it has one, how many bytes the response has.
    pub fn answered(&self, bytes: usize) {
        if let Some(turn) = self.0.turn.get() {
            turn.answered(bytes);
        }
    }

    /// Returns whether the request only reads. If so, an error may replace its response (`unsent_response_limits`), since the client can
    /// repeat the request.
    pub fn is_repeatable(&self) -> bool {
        self.0.caller.get().is_some_and(|known| known.repeatable)
    }

    /// Returns the id of the caller's store; `""` if no store is known.
    pub fn store_id(&self) -> &str {
        match self.recipient() {
            Some(Recipient::Key(store, _) | Recipient::Manager(store, _) | Recipient::Bridge(store, _)) => store.as_str(),
            None => "",
        }
    }
}

/// Returns whether a request came over TLS, according to the header `x-forwarded-proto` of the proxy in front of the server. If there are
/// several proxies, the first value of the header counts: it describes the connection of the browser.
pub fn is_secure(request: &poem::Request) -> bool {
    let proto = request.headers().get("x-forwarded-proto").and_then(|value| value.to_str().ok()).and_then(|text| text.split(',').next());
    proto.is_some_and(|proto| proto.trim().eq_ignore_ascii_case("https"))
}

/// Returns whether the value of an `Origin` header names this server: the scheme and the host under which the request reached it.
pub fn is_own_origin(request: &poem::Request, origin: &str) -> bool {
    let (host, scheme) = (request.header("host").unwrap_or_default(), if is_secure(request) { "https" } else { "http" });
    !host.is_empty() && origin.eq_ignore_ascii_case(&format!("{scheme}://{host}"))
}

/// Returns whether the runtime has several threads. If so, other threads continue while one thread is busy.
fn has_threads() -> bool {
    Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread
}
