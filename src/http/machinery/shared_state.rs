//! The state that all HTTP requests share.

use super::{
    cursor::Seal, fair_share::FairScheduler, long_poll::LongPolls, rate_limits::RateLimit, sign_in_requests::SignInRequests,
    unsent_responses::UnsentResponses,
};
use crate::{service::Service, telemetry::metrics::Metrics};

/// The service, and the state of the HTTP layer.
pub struct SharedState {
    pub service: Service,
    /// The service on a standby of the database, for operations that only read. Absent if there is no standby.
    pub replica: Option<Service>,
    pub seal: Seal,
    pub metrics: Metrics,
    /// Absent: the rate of requests is not limited.
    pub rate: Option<RateLimit>,
    pub under_way: UnsentResponses,
    pub turns: FairScheduler,
    pub long_polls: LongPolls,
    /// Absent: the server sends no e-mail.
    pub sign_in_requests: Option<SignInRequests>,
}

impl std::fmt::Debug for SharedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedState")
    }
}
