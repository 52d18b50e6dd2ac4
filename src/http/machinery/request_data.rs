//! The data that the middleware attaches to each request, for the extractors.

use std::sync::Arc;

use super::{context::Context, error::ApiError, query_string::QueryString, shared_state::SharedState};

/// The data of a request for the extractors. It is one value, since each further value would cost an allocation and a look-up.
#[derive(Clone)]
pub struct RequestData {
    pub state: Arc<SharedState>,
    pub context: Context,
    pub query: QueryString,
}

impl RequestData {
    /// Returns the data of a request. Fails if the request did not pass through `middleware`.
    pub fn of(request: &poem::Request) -> Result<&Self, ApiError> {
        request.data().ok_or_else(ApiError::internal)
    }
}
