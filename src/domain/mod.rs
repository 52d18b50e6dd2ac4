//! Domain model of a support inbox: its record types and their rules. Its code uses no HTTP, no database and no environment variables, and
//! only `clock` reads the system clock.
//!
//! Comments cite sections of the API contract, which is the specification for the developers of API clients. Where the contract leaves a
//! choice open, the section "Our decisions" of `features.md` states the choice of this project.

pub mod api_key_scopes;
pub mod api_keys;
pub mod channel_bridges;
pub mod clock;
pub mod contacts;
pub mod conversations;
pub mod custom_fields;
pub mod decimal_amounts;
pub mod delivery_outcome;
pub mod drafts;
pub mod events;
#[cfg(test)]
pub(crate) mod fake_clock_and_test_rules;
#[cfg(test)]
mod field_value_property_tests;
pub mod ids;
pub mod inbound_messages;
pub mod inbound_signatures;
pub mod json_number_precision;
pub mod messages;
pub mod ndjson_records;
pub mod ordered_object;
pub mod outbound_messages;
pub mod paging;
pub mod phones;
pub mod regex_cache;
pub mod retry_backoff;
pub mod revision_rules;
pub mod rules_for_older_records;
pub mod search;
pub mod send_requests;
pub mod settings_access;
pub mod ssrf_policy;
pub mod stores_and_accounts;
pub mod templates;
pub mod text_byte_limit;
pub mod ticket_field_filters;
pub mod ticket_filters;
pub mod ticket_states;
pub mod tickets;
pub mod time;
pub mod token_grants;
pub mod undelivered_messages;
pub mod unicode_text;
pub mod users_teams_labels;
pub mod webhooks;
