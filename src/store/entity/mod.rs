//! SeaORM entities, one for each table. `schema_tests` compares them with the migrated schema. Only the module `store` uses them.

use sea_orm::{DbBackend, DeriveRelation, EntityTrait, EnumIter, IdenStatic, Iterable};

pub mod accepted_signatures;
pub mod account_users;
pub mod accounts;
pub mod api_key_secrets;
pub mod api_keys;
pub mod attempts;
pub mod audit;
pub mod bridge_secrets;
pub mod bridges;
pub mod change_feed_entries;
pub mod change_feeds;
pub mod change_log_entries;
pub mod contact_field_definitions;
pub mod contacts;
pub mod conversation_labels;
pub mod conversations;
pub mod counters;
pub mod deliveries;
pub mod drafts;
pub mod events;
pub mod failed_messages;
pub mod forgotten_changes;
pub mod former_sort_positions;
pub mod idempotency_keys;
pub mod internal_comments;
pub mod labels;
pub mod messages;
pub mod open_tickets_by_label;
pub mod outbound;
pub mod roles;
pub mod sandbox;
pub mod server_secrets;
pub mod settings_credentials;
pub mod stores;
pub mod team_members;
pub mod teams;
pub mod templates;
pub mod ticket_field_definitions;
pub mod ticket_field_values;
pub mod tickets;
pub mod totals;
pub mod transaction_id_origin;
pub mod users;
pub mod webhook_kinds;
pub mod webhook_secrets;
pub mod webhooks;
pub mod write_probes;

/// What the file of an entity imports.
pub(in crate::store) mod prelude {
    pub use sea_orm::entity::prelude::*;

    pub use super::Relation;
}

/// The relations of every entity: none. Statements name the columns by which they join tables.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

/// Returns whether a database has this column. The table `labelled_tickets` is on SQLite only: on PostgreSQL, concurrent writers would have
/// to lock the conversation to maintain the table. The column `totals.part` is on PostgreSQL only: SQLite has one writer, so that a total
/// is one row.
pub(in crate::store) fn exists_on(backend: DbBackend, table: &str, column: &str) -> bool {
    match backend {
        DbBackend::Postgres => table != "labelled_tickets",
        _ => (table, column) != ("totals", "part"),
    }
}

/// Calls a generic function with this argument for the entity of each table. Returns an array of the results.
macro_rules! for_each_entity {
    ($function:ident, $argument:expr) => {
        for_each_entity! { $function($argument):
            accepted_signatures account_users accounts api_key_secrets api_keys attempts audit bridge_secrets bridges change_feed_entries
            change_feeds change_log_entries contact_field_definitions contacts conversation_labels conversations counters deliveries drafts
            events failed_messages forgotten_changes former_sort_positions idempotency_keys internal_comments labels messages
            open_tickets_by_label outbound roles sandbox server_secrets settings_credentials stores team_members teams templates
            ticket_field_definitions ticket_field_values tickets totals transaction_id_origin users webhook_kinds webhook_secrets webhooks
            write_probes
        }
    };
    ($function:ident($argument:expr): $($table:ident)*) => { [$($function::<$crate::store::entity::$table::Entity>($argument)),*] };
}

/// Returns the tables of a database that have an entity, and their columns.
pub(in crate::store) fn tables(backend: DbBackend) -> Vec<(&'static str, Vec<&'static str>)> {
    for_each_entity!(columns, backend).into_iter().filter(|(_, columns)| !columns.is_empty()).collect()
}

fn columns<E: EntityTrait>(backend: DbBackend) -> (&'static str, Vec<&'static str>) {
    let table = E::default().table_name();
    (table, E::Column::iter().map(|column| column.as_str()).filter(|column| exists_on(backend, table, column)).collect())
}

#[cfg(test)]
mod schema_tests;
