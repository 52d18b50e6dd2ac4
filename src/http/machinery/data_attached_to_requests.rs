//! The data that the middleware attaches to each request and that extractors read: the shared state of the server, the context (the
//! request's id, its time of arrival and its caller), and the parsed query string.

use std::sync::Arc;

use super::{context::Context, error_responses::ApiError, query_string::QueryString, shared_state::SharedState};

/// The data that extractors read from a request. The three parts are attached as one value, since each separate value would cost an
/// allocation and a look-up.
#[derive(Clone)]
pub struct RequestData {
    pub state: Arc<SharedState>,
    pub context: Context,
    pub query: QueryString,
}

impl RequestData {
    /// Returns the data that the module `middleware` attached to a request. Returns an error if the request did not pass through that
    /// module.
    pub fn of(request: &poem::Request) -> Result<&Self, ApiError> {
        request.data().ok_or_else(ApiError::internal)
    }
}
