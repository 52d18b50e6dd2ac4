//! Bridges: endpoints that the messages of a channel account are handed to, so that any channel can be attached. Pure.

use super::{ids::AccountId, time::Timestamp, webhooks::SigningSecret};

/// What the messages of an account go over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    pub account_id: AccountId,
    pub url: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// A bridge as a delivery needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    /// With what messages are signed, the newest first; several while the secret is being changed. Otherwise why no secret can be
    /// read.
    pub secrets: Result<Vec<SigningSecret>, String>,
}
