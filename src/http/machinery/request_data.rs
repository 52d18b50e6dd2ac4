//! The data that the middleware attaches to each request and that extractors read: the shared state, the context and the query string.

use std::sync::Arc;

use super::{context::Context, error::ApiError, query_string::QueryString, shared_state::SharedState};

/// The data that extractors read from a request. It is attached as one value, since each further attached value would cost an allocation
/// and a look-up.
#[derive(Clone)]
pub struct RequestData {
    pub state: Arc<SharedState>,
    pub context: Context,
    pub query: QueryString,
}

impl RequestData {
    /// Returns the data that the middleware attached to a request. Fails if the request did not pass through `middleware`.
    pub fn of(request: &poem::Request) -> Result<&Self, ApiError> {
        request.data().ok_or_else(ApiError::internal)
    }
}
