//! The rows of each table, as SeaORM entities. They never leave `store`.

pub mod account_users;
pub mod accounts;
pub mod api_key_secrets;
pub mod api_keys;
pub mod changes;
pub mod comments;
pub mod contact_fields;
pub mod contacts;
pub mod conversation_labels;
pub mod conversations;
pub mod counters;
pub mod events;
pub mod idempotency_keys;
pub mod labels;
pub mod messages;
pub mod roles;
pub mod server_secrets;
pub mod stores;
pub mod team_members;
pub mod teams;
pub mod templates;
pub mod ticket_field_values;
pub mod ticket_fields;
pub mod tickets;
pub mod users;
pub mod write_probes;
