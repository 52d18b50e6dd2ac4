//! Settings of a store: API keys, credentials, webhooks, bridges, their secrets, drafts, and the audit log.

pub mod api_keys;
pub mod audit;
pub mod bridges;
pub mod credentials;
pub mod drafts;
pub mod encryption_keys;
pub mod replay_protection;
pub mod seats;
pub mod secret_reencryption;
pub mod signing_secrets;
pub mod stores;
pub mod webhooks;
