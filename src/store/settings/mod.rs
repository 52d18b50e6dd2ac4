//! Settings of a store: keys, grants, webhooks, bridges, their secrets, and the audit log.

pub mod audit;
pub mod bridges;
pub mod endpoint_secrets;
pub mod grants;
pub mod keys;
pub mod sealed_secrets;
pub mod secret_keys;
pub mod stores;
pub mod webhooks;
