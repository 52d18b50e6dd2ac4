//! The state that all HTTP requests share.

use super::{
    cursor::Seal, fair_share::FairScheduler, long_poll::LongPolls, rate_limits::RateLimit, sign_in_link_requests::SignInRequests,
    unsent_response_limits::UnsentResponses,
};
use crate::{service::Service, telemetry::metrics::Metrics};

/// The state that all HTTP requests share: the service, which implements the use-cases, and the data of the HTTP layer.
pub struct SharedState {
    pub service: Service,
    /// A second instance of the service, which reads from a standby (replica) of the database. `None` if the database has no standby.
    pub replica: Option<Service>,
    pub seal: Seal,
    pub metrics: Metrics,
    /// `None` if the rate of requests is not limited.
    pub rate: Option<RateLimit>,
    pub under_way: UnsentResponses,
    pub turns: FairScheduler,
    pub long_polls: LongPolls,
    /// `None` if the server sends no e-mail.
    pub sign_in_requests: Option<SignInRequests>,
}

impl std::fmt::Debug for SharedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedState")
    }
}
