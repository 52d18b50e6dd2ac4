//! Bulk import: one write transaction that upserts batches of records in any order, then checks references and computes derived columns.
//!
//! Called by `service::import`. Guarantees: before [`Import::commit`], no other transaction sees anything of the import. Without a commit,
//! nothing of the import remains. The modules:
//! - `row_mapping`: converts a record into table rows.
//! - `import_connection`: runs statements on the import's connection.
//! - `bulk_statements`: one statement for many rows.
//! - `upsert`: writes batches into the tables.
//! - `unique_value_conflicts`: finds records with the same value in a unique index.
//! - `conversation_cache`: a cache of conversations that the import has seen.
//! - `deferred_indexes`: drops indexes and rebuilds them at the end.
//! - `consistency_checks`: tests, at the end, that referenced records exist and that records agree with each other.
//! - `derived_columns`: computes counters, newest messages, waiting times and ticket numbers.

mod bulk_statements;
mod consistency_checks;
mod conversation_cache;
mod deferred_indexes;
mod derived_columns;
mod import_connection;
mod row_mapping;
mod unique_value_conflicts;
mod upsert;

pub use consistency_checks::Definition;
pub(super) use derived_columns::DERIVE_TICKETS;
#[cfg(test)]
pub(super) use derived_columns::derive_tickets;

use std::collections::{HashMap, HashSet};

use sea_orm::{ColumnTrait, DbBackend, EntityTrait, QueryFilter, Value, sea_query::Expr};

use crate::{
    domain::{
        ids::StoreId,
        ndjson_records::{
            Account, Comment, Contact, ContactField, Conversation, ImportedTicket, Label, Line, Message, RecordKind, Role, Team, Template,
            TicketField, User,
        },
        time::Timestamp,
    },
    store::{Db, Error, Result, entity::change_log_entries, row_decoding::Cells, transaction::store_transaction::UNTRACKED_KIND},
};
use bulk_statements::Bulk;
use conversation_cache::RecentIds;
use deferred_indexes::DroppedIndex;
use import_connection::ImportConnection;

/// The records of consecutive lines of the import file, by kind.
#[derive(Debug, Default)]
pub struct Batch {
    pub roles: Vec<Line<Role>>,
    pub users: Vec<Line<User>>,
    pub teams: Vec<Line<Team>>,
    pub accounts: Vec<Line<Account>>,
    pub templates: Vec<Line<Template>>,
    pub labels: Vec<Line<Label>>,
    pub contact_fields: Vec<Line<ContactField>>,
    pub ticket_fields: Vec<Line<TicketField>>,
    pub contacts: Vec<Line<Contact>>,
    pub conversations: Vec<Line<Conversation>>,
    pub tickets: Vec<Line<ImportedTicket>>,
    pub messages: Vec<Line<Message>>,
    pub comments: Vec<Line<Comment>>,
}

/// An error in the records, because of which the import is refused.
#[derive(Debug)]
pub struct ImportFault {
    pub at: At,
    /// The property of the record whose value is wrong.
    pub property: &'static str,
    pub reason: String,
}

/// Where in the import file a fault is. A fault that a query finds has no line number. Such a fault is located by the kind of a record and
/// the value of one of the record's properties.
#[derive(Debug)]
pub enum At {
    Line {
        number: u64,
        kind: RecordKind,
    },
    /// The first record of these kinds whose `property` has this value.
    Where {
        kinds: &'static [RecordKind],
        property: &'static str,
        value: String,
    },
}

/// The most faults that one import reports.
pub const MAX_FAULTS: usize = 20;

/// Why a step of the import failed.
#[derive(Debug)]
pub enum ImportFailure {
    Faults(Vec<ImportFault>),
    Store(Error),
}

impl From<ImportFault> for ImportFailure {
    fn from(fault: ImportFault) -> Self {
        Self::Faults(vec![fault])
    }
}

impl From<Error> for ImportFailure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// The result of a step of the import.
pub type ImportResult = std::result::Result<(), ImportFailure>;

/// The prefix of a placeholder: a text that a column holds until the import writes its final value. A unique column of a stored record
/// holds a placeholder so that another record of the import can take the column's former value: two records may exchange values.
/// `messages.account_id` holds a placeholder while the conversation of the message is unknown. No record's value begins with this prefix.
const PLACEHOLDER_PREFIX: &str = "\u{1}";

/// Foreign keys that PostgreSQL checks immediately, since their rows are inserted right after the record that they refer to. For a check at
/// the commit, PostgreSQL would have to remember every row, and to find the record among row versions that later statements have replaced.
const IMMEDIATE_FOREIGN_KEYS: &str = "conversation_labels_store_id_conversation_id_fkey, ticket_field_values_store_id_ticket_id_fkey";

/// An import in progress.
pub struct Import {
    way: ImportConnection,
    store: String,
    is_distributed: bool,
    now: Timestamp,
    /// The id of the transaction on PostgreSQL, which entries of the change log contain. 0 on SQLite.
    transaction: i64,
    /// The kinds of records that the store had before this import.
    existing_kinds: Vec<RecordKind>,
    /// For each kind of record: the creation time that the next record without a creation time gets.
    ages: HashMap<RecordKind, i64>,
    known: RecentIds,
    /// Whether `messages.account_id` has to be set from the conversations at the end of the import.
    realign: bool,
    /// The number of batches so far that contained messages.
    message_batches: u64,
    /// Whether, so far, the conversation of each message was in the database before the message.
    after_conversation: bool,
    /// Indexes that were dropped and are rebuilt at the end of the import.
    lifted: Vec<DroppedIndex>,
    /// The kinds of records that the import has contained so far. Only kinds that refer to a contact or a conversation are noted.
    came: HashSet<RecordKind>,
    /// Whether the import contains accounts. If so, the check at the end tests all conversations of the store: a conversation must have the
    /// channel of its account.
    accounts_came: bool,
}

impl Db {
    /// Begins an import into a store; `None` when there is no such store.
    pub async fn begin_import(&self, store: &StoreId, now: Timestamp) -> Result<Option<Import>> {
        let way = ImportConnection::open(self).await?;
        let backend = way.backend();
        let mut import = Import {
            way,
            store: store.as_str().to_owned(),
            is_distributed: self.is_distributed(),
            now,
            transaction: 0,
            existing_kinds: Vec::new(),
            ages: HashMap::new(),
            known: RecentIds::default(),
            realign: false,
            message_batches: 0,
            after_conversation: true,
            lifted: Vec::new(),
            came: HashSet::new(),
            accounts_came: false,
        };
        // The lock makes a second import into the store wait for the first. On SQLite every writer waits for the import.
        let lock = if backend == DbBackend::Postgres { " FOR NO KEY UPDATE" } else { "" };
        let find = format!("SELECT id FROM stores WHERE id = ?{lock}");
        if import.first(&find, [store.as_str().into()], text).await?.is_none() {
            return Ok(None);
        }
        // The temporary tables below are dropped by the commit on PostgreSQL, and by closing the connection on SQLite.
        let (text_type, on_commit) = match backend {
            DbBackend::Postgres => {
                let transaction = import.first("SELECT pg_current_xact_id()::text::bigint", [], |cells| cells.take()).await?;
                import.transaction = transaction.unwrap_or_default();
                import.change(UNTRACKED_KIND, std::iter::once(store.as_str())).await?;
                import.run(&format!("SET CONSTRAINTS {IMMEDIATE_FOREIGN_KEYS} IMMEDIATE"), []).await?;
                ("TEXT COLLATE \"C\"", " ON COMMIT DROP")
            }
            _ => ("TEXT", ""),
        };
        // The table of conversations whose derived columns have to be computed again.
        import.run(&format!("CREATE TEMPORARY TABLE import_touched (id {text_type} PRIMARY KEY){on_commit}"), []).await?;
        // The table of imported tickets: the line of each ticket in the file, and the ticket number that it had before the import.
        import
            .run(
                &format!("CREATE TEMPORARY TABLE import_tickets (id {text_type} PRIMARY KEY, line BIGINT, former {text_type}){on_commit}"),
                [],
            )
            .await?;
        if backend == DbBackend::Postgres {
            // The table of the number of messages of each conversation.
            import
                .run(&format!("CREATE TEMPORARY TABLE import_counts (id {text_type} PRIMARY KEY, messages BIGINT){on_commit}"), [])
                .await?;
        }
        for kind in RecordKind::ALL {
            let find = format!("SELECT id FROM {} WHERE store_id = ? LIMIT 1", table(kind));
            if import.first(&find, [store.as_str().into()], text).await?.is_some() {
                import.existing_kinds.push(kind);
            }
        }
        Ok(Some(import))
    }
}

impl Import {
    /// Returns whether the store had records of the kind before the import.
    pub fn had_records(&self, kind: RecordKind) -> bool {
        self.existing_kinds.contains(&kind)
    }

    /// Returns whether the import has to lock all rows that it will change before it changes any of them. This is so on PostgreSQL if the
    /// store had conversations before the import: other transactions may lock the same rows one by one, which could cause a deadlock.
    pub fn must_lock_rows(&self) -> bool {
        self.way.backend() == DbBackend::Postgres && self.had_records(RecordKind::Conversation)
    }

    /// Adds these conversations to those that the import will change. The import will change the tickets of these conversations, too.
    pub async fn note_conversations(&mut self, conversations: &[String]) -> Result<()> {
        self.touch(conversations.iter().map(String::as_str)).await
    }

    /// Like [`Import::note_conversations`], for the conversations to which the stored versions of these records belong. The imported
    /// versions, which replace the stored ones, may belong to other conversations.
    pub async fn note_former_conversations(&self, kind: RecordKind, ids: &[String]) -> Result<()> {
        self.touch_former(kind, ids.iter().map(String::as_str)).await
    }

    /// Locks the rows that the import will change, before it changes any of them. The locks are taken in the order in which every writer
    /// takes them, which prevents deadlocks: first the store's users and accounts, if the import contains such records (`brings`), then the
    /// conversations that [`Import::note_conversations`] and [`Import::note_former_conversations`] have added, then the tickets of these
    /// conversations. Writers of messages wait for these locks, so that no message is missing from the counts that the import computes.
    pub async fn lock_affected(&self, brings: impl Fn(RecordKind) -> bool) -> Result<()> {
        self.run("ANALYZE import_touched", []).await?;
        for (kind, sql) in [
            (RecordKind::User, "SELECT COUNT(*) FROM (SELECT id FROM users WHERE store_id = ? ORDER BY id FOR NO KEY UPDATE) AS held"),
            (
                RecordKind::Account,
                "SELECT COUNT(*) FROM (SELECT id FROM accounts WHERE store_id = ? ORDER BY id FOR NO KEY UPDATE) AS held",
            ),
        ] {
            if brings(kind) {
                self.run(sql, [self.store.as_str().into()]).await?;
            }
        }
        // Citus does not support `IN` with a local table in a statement that locks rows; it supports an array.
        for sql in [
            "SELECT COUNT(*) FROM (SELECT id FROM conversations WHERE store_id = ? AND id = ANY (ARRAY(SELECT id FROM import_touched)) \
             ORDER BY id FOR NO KEY UPDATE) AS held",
            "SELECT COUNT(*) FROM (SELECT id FROM tickets WHERE store_id = ? AND conversation_id = ANY (ARRAY(SELECT id FROM import_touched)) \
             ORDER BY id FOR NO KEY UPDATE) AS held",
        ] {
            self.run(sql, [self.store.as_str().into()]).await?;
        }
        Ok(())
    }

    /// Releases the unique values of the stored records with these ids before the new records are written: sets their unique columns to
    /// placeholders or NULL, and closes open tickets. So the order of lines does not matter if two records exchange an e-mail address, or
    /// if another ticket of a conversation becomes the open one. Also stores the former numbers of tickets in `import_tickets`.
    pub async fn release_unique_values(&self, kind: RecordKind, ids: &[String]) -> Result<()> {
        if ids.is_empty() || !self.had_records(kind) {
            return Ok(());
        }
        let set = match kind {
            RecordKind::User => "user_id = NULL",
            RecordKind::Contact => "email_key = NULL, phone = NULL",
            RecordKind::Conversation => "reference_id = ? || id",
            RecordKind::Ticket => "ticket_number = ? || id, is_open = FALSE",
            RecordKind::Message => "external_id = NULL",
            _ => return Ok(()),
        };
        let Bulk { sql: among, runs } = bulk_statements::among(self.way.backend(), ids.iter().map(String::as_str));
        let store = Value::from(self.store.as_str());
        if kind == RecordKind::Ticket {
            let sql =
                format!("INSERT INTO import_tickets (id, former) SELECT id, ticket_number FROM tickets WHERE store_id = ? AND id {among}");
            self.way.run(&sql, std::slice::from_ref(&store), runs.clone(), &[]).await?;
        }
        let also = if kind == RecordKind::Message { " AND external_id IS NOT NULL" } else { "" };
        let marker = set.contains('?').then(|| Value::from(PLACEHOLDER_PREFIX));
        let before: Vec<Value> = marker.into_iter().chain([store]).collect();
        self.way.run(&format!("UPDATE {} SET {set} WHERE store_id = ? AND id {among}{also}", table(kind)), &before, runs, &[]).await
    }

    /// Commits the import. `db` is the database that the import was begun on.
    pub async fn commit(self, db: &Db) -> Result<()> {
        let Self { way, store, transaction, is_distributed, .. } = self;
        way.commit().await?;
        if !is_distributed {
            return Ok(());
        }
        // Citus commits an import in two phases, so its change log entries become visible only after the coordinator's transaction has
        // ended. Meanwhile a reader of the log may have passed this transaction. So the entries get the id of a later transaction.
        let entries = change_log_entries::Entity::update_many()
            .col_expr(change_log_entries::Column::TransactionId, Expr::cust("pg_current_xact_id()::text::bigint"))
            .filter(change_log_entries::Column::StoreId.eq(store))
            .filter(change_log_entries::Column::TransactionId.eq(transaction));
        // The import itself is committed, so a failure here is only logged.
        if let Err(error) = db.execute(&entries).await {
            tracing::warn!(%error, "searches may miss what was imported; run `counterpart reindex` with the server stopped");
        }
        Ok(())
    }

    /// Rolls the import back.
    pub async fn rollback(self) -> Result<()> {
        self.way.rollback().await
    }

    /// Runs a statement whose parameters `?` are bound to `values` in order.
    async fn run(&self, sql: &str, values: impl IntoIterator<Item = Value>) -> Result<()> {
        self.way.run(sql, &[], vec![values.into_iter().collect()], &[]).await
    }

    async fn rows<T>(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.way.all(sql, &[], vec![values.into_iter().collect()], &[], decode).await
    }

    async fn first<T>(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.rows(sql, values, decode).await?.into_iter().next())
    }
}

/// Returns the name of the table that holds the records of a kind.
const fn table(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Role => "roles",
        RecordKind::User => "users",
        RecordKind::Team => "teams",
        RecordKind::Account => "accounts",
        RecordKind::Template => "templates",
        RecordKind::Label => "labels",
        RecordKind::ContactField => "contact_fields",
        RecordKind::TicketField => "ticket_fields",
        RecordKind::Contact => "contacts",
        RecordKind::Conversation => "conversations",
        RecordKind::Ticket => "tickets",
        RecordKind::Message => "messages",
        RecordKind::Comment => "comments",
    }
}

/// Returns the SQL for a list of parameters, such as `?,?`.
fn list(values: usize) -> String {
    vec!["?"; values].join(",")
}

/// Replaces each parameter `?` by PostgreSQL's `$1`, `$2`, ….
fn numbered(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len() + 64);
    for (number, part) in sql.split('?').enumerate() {
        if number > 0 {
            out.push_str(&format!("${number}"));
        }
        out.push_str(part);
    }
    out
}

/// Decodes a text column that is never NULL.
fn text(cells: &mut Cells<'_>) -> Result<String> {
    cells.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_numbered_for_postgres() {
        assert_eq!(numbered("a = ? AND b IN (?,?)"), "a = $1 AND b IN ($2,$3)");
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }
}
