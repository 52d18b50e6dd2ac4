//! One import: a write transaction that takes batches of records in any order, then checks all of them together and derives what follows
//! from them.
//!
//! Called by `service::import`. Guarantees: nothing is visible before [`Import::commit`], and nothing remains without it.
//! - `rows`: converts a record into table rows.
//! - `executor`: runs the statements.
//! - `bulk`: one statement for many rows.
//! - `upsert`: writes batches into the tables.
//! - `unique_values`: values that a unique index guards.
//! - `recent_conversations`: a cache of conversations.
//! - `deferred_indexes`: indexes that are rebuilt at the end.
//! - `check`: references and agreements, tested at the end.
//! - `derive`: counters, newest messages, waiting times, ticket numbers.

mod bulk;
mod check;
mod deferred_indexes;
mod derive;
mod executor;
mod recent_conversations;
mod rows;
mod unique_values;
mod upsert;

pub use check::Definition;
pub(super) use derive::DERIVE_TICKETS;

use std::collections::{HashMap, HashSet};

use sea_orm::{DbBackend, Value};

use crate::{
    domain::{
        ids::StoreId,
        records::{
            Account, Comment, Contact, ContactField, Conversation, ImportedTicket, Label, Line, Message, RecordKind, Role, Team, Template,
            TicketField, User,
        },
        time::Timestamp,
    },
    store::{Db, Result, rows::Cells, transaction::write::OTHER},
};
use bulk::Bulk;
use deferred_indexes::Lifted;
use executor::Way;
use recent_conversations::RecentIds;

/// Records of one stretch of the file, by kind.
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

/// Why the records cannot be taken.
#[derive(Debug)]
pub struct Fault {
    pub at: At,
    /// The property at fault.
    pub property: &'static str,
    pub reason: String,
}

/// Where a fault is. The database has no line numbers, so that some faults are located by the kind and the value of a record.
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

/// The most faults that are looked for.
pub const MAX_FAULTS: usize = 20;

/// Either done, or the records are at fault.
pub type ImportResult = std::result::Result<(), Fault>;

/// The beginning of a stand-in value in a unique column, while its row waits for the record that replaces it. No record's value begins
/// with it.
const PARKED: &str = "\u{1}";

/// Foreign keys that PostgreSQL checks immediately, since their rows are inserted right after the record that they refer to. At the
/// commit PostgreSQL would have to remember every row, and to find its record among row versions that were replaced meanwhile.
const WITH_PARENT: &str = "conversation_labels_store_id_conversation_id_fkey, ticket_field_values_store_id_ticket_id_fkey";

/// An import in progress.
pub struct Import {
    way: Way,
    backend: DbBackend,
    store: String,
    now: Timestamp,
    /// PostgreSQL's transaction id, for the change log.
    transaction: i64,
    /// Kinds that had records before this import.
    held: Vec<RecordKind>,
    /// The next creation time of a record that carries none, by kind.
    ages: HashMap<RecordKind, i64>,
    known: RecentIds,
    /// Whether `messages.account_id` has to be brought in line with the conversations.
    realign: bool,
    /// The number of batches so far that had messages.
    message_batches: u64,
    /// Whether so far every message came after its conversation.
    after_conversation: bool,
    /// Indexes that were dropped and are rebuilt at the end.
    lifted: Vec<Lifted>,
    /// The kinds that came so far and whose records refer to a contact or a conversation.
    came: HashSet<RecordKind>,
    /// Whether accounts came, so that agreement of channels is tested for the whole store.
    accounts_came: bool,
}

impl Db {
    /// Begins an import into a store; `None` when there is no such store.
    pub async fn begin_import(&self, store: &StoreId, now: Timestamp) -> Result<Option<Import>> {
        let way = Way::open(self).await?;
        let backend = way.backend();
        let mut import = Import {
            way,
            backend,
            store: store.as_str().to_owned(),
            now,
            transaction: 0,
            held: Vec::new(),
            ages: HashMap::new(),
            known: RecentIds::default(),
            realign: false,
            message_batches: 0,
            after_conversation: true,
            lifted: Vec::new(),
            came: HashSet::new(),
            accounts_came: false,
        };
        // Two imports into a store take turns; on SQLite every writer does.
        let lock = if backend == DbBackend::Postgres { " FOR NO KEY UPDATE" } else { "" };
        let find = format!("SELECT id FROM stores WHERE id = ?{lock}");
        if import.first(&find, [store.as_str().into()], text).await?.is_none() {
            return Ok(None);
        }
        // SQLite's temporary tables go with the connection.
        let (text_type, on_commit) = match backend {
            DbBackend::Postgres => {
                let transaction = import.first("SELECT pg_current_xact_id()::text::bigint", [], |cells| cells.take()).await?;
                import.transaction = transaction.unwrap_or_default();
                import.change(OTHER, std::iter::once(store.as_str())).await?;
                import.run(&format!("SET CONSTRAINTS {WITH_PARENT} IMMEDIATE"), []).await?;
                ("TEXT COLLATE \"C\"", " ON COMMIT DROP")
            }
            _ => ("TEXT", ""),
        };
        // Conversations whose derived columns have to be computed again.
        import.run(&format!("CREATE TEMPORARY TABLE import_touched (id {text_type} PRIMARY KEY){on_commit}"), []).await?;
        // Tickets that came, in the order of the file, and the number that each had before.
        import
            .run(
                &format!("CREATE TEMPORARY TABLE import_tickets (id {text_type} PRIMARY KEY, line BIGINT, former {text_type}){on_commit}"),
                [],
            )
            .await?;
        if backend == DbBackend::Postgres {
            // How many messages a conversation has.
            import
                .run(&format!("CREATE TEMPORARY TABLE import_counts (id {text_type} PRIMARY KEY, messages BIGINT){on_commit}"), [])
                .await?;
        }
        for kind in RecordKind::ALL {
            let find = format!("SELECT id FROM {} WHERE store_id = ? LIMIT 1", table(kind));
            if import.first(&find, [store.as_str().into()], text).await?.is_some() {
                import.held.push(kind);
            }
        }
        Ok(Some(import))
    }
}

impl Import {
    /// Whether the store had records of the kind before the import.
    pub fn held(&self, kind: RecordKind) -> bool {
        self.held.contains(&kind)
    }

    /// Whether the import has to lock the rows that it will change before it changes any. That is so on PostgreSQL, where other
    /// transactions lock rows one by one, if the store has conversations.
    pub fn holds(&self) -> bool {
        self.backend == DbBackend::Postgres && self.held(RecordKind::Conversation)
    }

    /// Says that the import will change these conversations and their tickets.
    pub async fn reach(&mut self, conversations: &[String]) -> Result<()> {
        self.touch(conversations.iter().map(String::as_str)).await
    }

    /// Says that the import will replace these records, and change the conversations that they belong to now.
    pub async fn reach_former(&self, kind: RecordKind, ids: &[String]) -> Result<()> {
        self.touch_former(kind, ids.iter().map(String::as_str)).await
    }

    /// Locks users and accounts where the import brings some, then every conversation that was reached, then their tickets, in the order
    /// in which every other writer locks them. Locked in the order of lines, they would make two transactions wait for each other. The
    /// locks also keep the counts complete, since a writer of a message waits.
    pub async fn hold(&self, brings: impl Fn(RecordKind) -> bool) -> Result<()> {
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
        for sql in [
            "SELECT COUNT(*) FROM (SELECT c.id FROM conversations c JOIN import_touched t ON t.id = c.id \
             WHERE c.store_id = ? ORDER BY c.id FOR NO KEY UPDATE OF c) AS held",
            "SELECT COUNT(*) FROM (SELECT k.id FROM tickets k JOIN import_touched t ON t.id = k.conversation_id \
             WHERE k.store_id = ? ORDER BY k.id FOR NO KEY UPDATE OF k) AS held",
        ] {
            self.run(sql, [self.store.as_str().into()]).await?;
        }
        Ok(())
    }

    /// Frees the values that the records with these ids hold in unique indexes, before the records that replace them are written. This
    /// makes the order of the lines irrelevant when two records exchange an e-mail address, or another ticket becomes the open one.
    pub async fn park(&self, kind: RecordKind, ids: &[String]) -> Result<()> {
        if ids.is_empty() || !self.held(kind) {
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
        let Bulk { sql: among, runs } = bulk::among(self.backend, ids.iter().map(String::as_str));
        let store = Value::from(self.store.as_str());
        if kind == RecordKind::Ticket {
            let sql =
                format!("INSERT INTO import_tickets (id, former) SELECT id, ticket_number FROM tickets WHERE store_id = ? AND id {among}");
            self.way.run(&sql, std::slice::from_ref(&store), runs.clone(), &[]).await?;
        }
        let also = if kind == RecordKind::Message { " AND external_id IS NOT NULL" } else { "" };
        let marker = set.contains('?').then(|| Value::from(PARKED));
        let before: Vec<Value> = marker.into_iter().chain([store]).collect();
        self.way.run(&format!("UPDATE {} SET {set} WHERE store_id = ? AND id {among}{also}", table(kind)), &before, runs, &[]).await
    }

    /// Ends the import for good.
    pub async fn commit(self) -> Result<()> {
        self.way.commit().await
    }

    /// Takes everything back.
    pub async fn rollback(self) -> Result<()> {
        self.way.rollback().await
    }

    /// Runs a statement whose variables are `?`, in order.
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

/// The table of a kind.
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

/// A list of variables, such as `?,?`.
fn list(values: usize) -> String {
    vec!["?"; values].join(",")
}

/// `?` as PostgreSQL spells it.
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

/// A text column that the query makes sure is there.
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
