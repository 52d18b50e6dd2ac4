//! SeaORM entities: the one description of every table, held to the migrated schema by `schema_tests`. They never leave `store`.

pub mod account_users;
pub mod accounts;
pub mod api_key_secrets;
pub mod api_keys;
pub mod attempts;
pub mod audit;
pub mod bridge_secrets;
pub mod bridges;
pub mod changes;
pub mod comments;
pub mod contact_fields;
pub mod contacts;
pub mod conversation_labels;
pub mod conversations;
pub mod counters;
pub mod deliveries;
pub mod events;
pub mod forgotten_changes;
pub mod grants;
pub mod idempotency_keys;
pub mod labelled_tickets;
pub mod labels;
pub mod messages;
pub mod outbound;
pub mod roles;
pub mod server_secrets;
pub mod stores;
pub mod team_members;
pub mod teams;
pub mod templates;
pub mod ticket_field_values;
pub mod ticket_fields;
pub mod tickets;
pub mod totals;
pub mod users;
pub mod webhook_kinds;
pub mod webhook_secrets;
pub mod webhooks;
pub mod write_probes;

#[cfg(test)]
mod schema_tests;
