//! The data that the middleware attaches to a request for the extractors.

use std::sync::Arc;

use super::{context::Context, error::ApiError, query_string::QueryString, shared_state::SharedState};

/// All of this data is one piece, since each further piece costs an allocation and a look-up.
#[derive(Clone)]
pub struct Arrival {
    pub state: Arc<SharedState>,
    pub context: Context,
    pub query: QueryString,
}

impl Arrival {
    /// Fails where a request did not pass through `middleware`.
    pub fn of(request: &poem::Request) -> Result<&Self, ApiError> {
        request.data().ok_or_else(ApiError::internal)
    }
}
