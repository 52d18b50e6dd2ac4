//! Bridges: HTTP endpoints that deliver the messages of a channel account, so that any channel can be attached.

use super::{ids::AccountId, time::Timestamp, webhooks::SigningSecret};

/// The bridge of a channel account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    pub account_id: AccountId,
    pub url: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The properties of a bridge that are needed to deliver a message to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeEndpoint {
    pub url: String,
    /// The signing secrets, newest first; several during a rotation. `Err`: why no secret can be decrypted.
    pub secrets: Result<Vec<SigningSecret>, String>,
}
