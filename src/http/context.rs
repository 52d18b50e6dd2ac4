//! What is known of a request before it is authenticated: its id and its arrival (section 2.1; decisions, section 3).

use std::sync::{Arc, OnceLock};

use poem::http::HeaderMap;

use super::{api::Api, error::ApiError, params::Sent};
use crate::domain::{clock::World, ids::StoreId, rules::ReceivedAt, time::Timestamp};

/// The header that carries the request id, in both directions.
pub const REQUEST_ID: &str = "x-request-id";

/// What the edge lays beside a request for whoever reads it: in one piece, since each further one costs an allocation and a look-up.
#[derive(Clone)]
pub struct Arrival {
    pub api: Arc<Api>,
    pub context: Context,
    pub query: Sent,
}

impl Arrival {
    /// Fails where a request did not come through the edge.
    pub fn of(request: &poem::Request) -> Result<&Self, ApiError> {
        request.data().ok_or_else(ApiError::internal)
    }
}

/// One request, for as long as it lasts.
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    request_id: String,
    received_at: Timestamp,
    received_at_form: ReceivedAt,
    store: OnceLock<StoreId>,
}

impl Context {
    /// Keeps an incoming request id of 1 to 128 visible ASCII characters, else makes one.
    pub fn arrive(headers: &HeaderMap, world: &World, received_at_form: ReceivedAt) -> Self {
        let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let request_id = match given {
            Some(id) if (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) => id.to_owned(),
            _ => world.ids.fresh(),
        };
        Self(Arc::new(Inner { request_id, received_at: world.now(), received_at_form, store: OnceLock::new() }))
    }

    pub fn request_id(&self) -> &str {
        &self.0.request_id
    }

    pub fn received_at(&self) -> Timestamp {
        self.0.received_at
    }

    /// `requestReceivedAt` as the contract that was asked writes it.
    pub fn received_at_text(&self) -> String {
        match self.0.received_at_form {
            ReceivedAt::Timestamp => self.0.received_at.to_string(),
            ReceivedAt::UnixMillis => self.0.received_at.millis().to_string(),
        }
    }

    /// Called once, by authentication.
    pub fn authenticated(&self, store: StoreId) {
        // A second call can only repeat the first: one request has one key.
        let _ = self.0.store.set(store);
    }

    /// The store of the key, or `""` where no store is known.
    pub fn store_id(&self) -> &str {
        self.0.store.get().map_or("", StoreId::as_str)
    }
}
