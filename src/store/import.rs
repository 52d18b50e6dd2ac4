//! One import: a write transaction that takes batches of records in any order, then checks and derives what follows
//! from all of them together.
//!
//! Called by `service::import`. Guarantees: nothing is visible before [`Import::commit`], and nothing remains without it.
//! - `rows`: a record as the rows it becomes.
//! - `bulk`: many values in one statement.
//! - `put`: batches into the tables.
//! - `check`: references and agreements, tested at the end.
//! - `derive`: counters, newest messages, waiting times, ticket numbers.

mod bulk;
mod check;
mod derive;
mod put;
mod rows;

pub use check::Definition;
pub(super) use derive::DERIVE_TICKETS;

use std::collections::HashMap;

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};

use super::{Db, Error, Result, Tx, write::OTHER};
use crate::domain::{
    ids::StoreId,
    records::{
        Account, Comment, Contact, ContactField, Conversation, ImportedTicket, Kind, Label, Line, Message, Role, Team, Template,
        TicketField, User,
    },
    time::Timestamp,
};
use bulk::Bulk;

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

/// Where a fault is. The database knows no lines, so that some are told by what stands on them.
#[derive(Debug)]
pub enum At {
    Line {
        number: u64,
        kind: Kind,
    },
    /// The first record of these kinds whose `property` has this value.
    Where {
        kinds: &'static [Kind],
        property: &'static str,
        value: String,
    },
}

/// Either done, or the records are at fault.
pub type Outcome = std::result::Result<(), Fault>;

/// What stands in a unique column while its row waits for the record that replaces it. No record begins with it.
const PARKED: &str = "\u{1}";

/// Bind variables of one statement: below the limits of both databases.
const MAX_VARIABLES: usize = 30_000;

/// An import in progress.
pub struct Import {
    tx: Tx,
    backend: DbBackend,
    store: String,
    now: Timestamp,
    /// As the change log wants it.
    transaction: i64,
    /// Kinds that had records before this import.
    held: Vec<Kind>,
    /// The next age of a record that carries none.
    ages: HashMap<Kind, i64>,
    /// Whether `messages.account_id` has to be brought in line with the conversations.
    realign: bool,
    /// Batches with messages that came.
    message_batches: u64,
    /// Whether accounts came, so that agreement of channels is tested for the whole store.
    accounts_came: bool,
}

impl Db {
    /// Begins an import into a store; `None` when there is no such store.
    pub async fn begin_import(&self, store: &StoreId, now: Timestamp) -> Result<Option<Import>> {
        let backend = self.backend();
        let tx = self.begin().await?;
        let mut import = Import {
            tx,
            backend,
            store: store.as_str().to_owned(),
            now,
            transaction: 0,
            held: Vec::new(),
            ages: HashMap::new(),
            realign: false,
            message_batches: 0,
            accounts_came: false,
        };
        // Two imports into a store take turns; on SQLite every writer does.
        let lock = if backend == DbBackend::Postgres { " FOR NO KEY UPDATE" } else { "" };
        let found = import.rows(&format!("SELECT id FROM stores WHERE id = ?{lock}"), [store.as_str().into()]).await?;
        if found.is_empty() {
            return Ok(None);
        }
        let on_commit = match backend {
            DbBackend::Postgres => {
                let row = import.rows("SELECT pg_current_xact_id()::text::bigint", []).await?;
                import.transaction = row.first().map_or(Ok(0), |row| row.try_get_by_index(0))?;
                import.change(OTHER, std::iter::once(store.as_str())).await?;
                " ON COMMIT DROP"
            }
            _ => {
                // The indexes of a large import outgrow the default cache of 2 MB.
                import.run("PRAGMA cache_size = -32768", []).await?;
                ""
            }
        };
        let text = if backend == DbBackend::Postgres { "TEXT COLLATE \"C\"" } else { "TEXT" };
        // Conversations whose derived columns have to be made again.
        import.run(&format!("CREATE TEMPORARY TABLE import_touched (id {text} PRIMARY KEY){on_commit}"), []).await?;
        // Tickets that came, in the order of the file, and the number that each had before.
        import
            .run(&format!("CREATE TEMPORARY TABLE import_tickets (id {text} PRIMARY KEY, line BIGINT, former {text}){on_commit}"), [])
            .await?;
        for kind in Kind::ALL {
            let rows = import.rows(&format!("SELECT id FROM {} WHERE store_id = ? LIMIT 1", table(kind)), [store.as_str().into()]).await?;
            if !rows.is_empty() {
                import.held.push(kind);
            }
        }
        Ok(Some(import))
    }
}

impl Import {
    /// Whether the store had records of the kind before the import.
    pub fn held(&self, kind: Kind) -> bool {
        self.held.contains(&kind)
    }

    /// Whether the rows that the import will change have to be held before it changes any: other transactions hold rows
    /// one by one there, and there are some.
    pub fn holds(&self) -> bool {
        self.backend == DbBackend::Postgres && self.held(Kind::Conversation)
    }

    /// Says that the import will change these conversations and their tickets.
    pub async fn reach(&self, conversations: &[String]) -> Result<()> {
        self.touch(conversations.iter().map(String::as_str)).await
    }

    /// Says that the import will replace these records, and change the conversations that they belong to now.
    pub async fn reach_former(&self, kind: Kind, ids: &[String]) -> Result<()> {
        self.touch_former(kind, ids.iter().map(String::as_str).collect()).await
    }

    /// Holds users and accounts where the import brings some, then every conversation that was reached, then their tickets,
    /// in the order in which every other writer holds them: taken as the lines come, they would make two transactions wait
    /// for each other. And no message is left out of the counts, since its writer waits.
    pub async fn hold(&self, brings: impl Fn(Kind) -> bool) -> Result<()> {
        self.run("ANALYZE import_touched", []).await?;
        for (kind, sql) in [
            (Kind::User, "SELECT COUNT(*) FROM (SELECT id FROM users WHERE store_id = ? ORDER BY id FOR UPDATE) AS held"),
            (Kind::Account, "SELECT COUNT(*) FROM (SELECT id FROM accounts WHERE store_id = ? ORDER BY id FOR UPDATE) AS held"),
        ] {
            if brings(kind) {
                self.run(sql, [self.store.as_str().into()]).await?;
            }
        }
        for sql in [
            "SELECT COUNT(*) FROM (SELECT c.id FROM conversations c JOIN import_touched t ON t.id = c.id \
             WHERE c.store_id = ? ORDER BY c.id FOR UPDATE OF c) AS held",
            "SELECT COUNT(*) FROM (SELECT k.id FROM tickets k JOIN import_touched t ON t.id = k.conversation_id \
             WHERE k.store_id = ? ORDER BY k.id FOR UPDATE OF k) AS held",
        ] {
            self.run(sql, [self.store.as_str().into()]).await?;
        }
        Ok(())
    }

    /// Frees what the records with these ids hold in unique indexes, before the records that replace them come: the order
    /// of lines says nothing, so that two of them may exchange an e-mail address or an open ticket make room for another.
    pub async fn park(&self, kind: Kind, ids: &[String]) -> Result<()> {
        if ids.is_empty() || !self.held(kind) {
            return Ok(());
        }
        let set = match kind {
            Kind::User => "user_id = NULL",
            Kind::Contact => "email_key = NULL, phone = NULL",
            Kind::Conversation => "reference_id = ? || id",
            Kind::Ticket => "ticket_number = ? || id, is_open = FALSE",
            Kind::Message => "external_id = NULL",
            _ => return Ok(()),
        };
        let Bulk { sql: among, values } = bulk::among(self.backend, ids.iter().map(String::as_str));
        let scope = || std::iter::once(self.store.as_str().into()).chain(values.clone());
        if kind == Kind::Ticket {
            let sql =
                format!("INSERT INTO import_tickets (id, former) SELECT id, ticket_number FROM tickets WHERE store_id = ? AND id {among}");
            self.run(&sql, scope()).await?;
        }
        let also = if kind == Kind::Message { " AND external_id IS NOT NULL" } else { "" };
        let marker = set.contains('?').then(|| Value::from(PARKED));
        self.run(&format!("UPDATE {} SET {set} WHERE store_id = ? AND id {among}{also}", table(kind)), marker.into_iter().chain(scope()))
            .await
    }

    /// Ends the import for good.
    pub async fn commit(self) -> Result<()> {
        if self.backend == DbBackend::Sqlite {
            for sql in ["DROP TABLE import_touched", "DROP TABLE import_tickets", "PRAGMA cache_size = -2000"] {
                self.run(sql, []).await?;
            }
        }
        self.tx.commit().await
    }

    /// Takes everything back.
    pub async fn rollback(self) -> Result<()> {
        self.tx.rollback().await
    }

    /// Runs a statement whose variables are `?`, in order.
    async fn run(&self, sql: &str, values: impl IntoIterator<Item = Value>) -> Result<()> {
        self.tx.execute_raw(self.statement(sql, values)).await?;
        Ok(())
    }

    async fn rows(&self, sql: &str, values: impl IntoIterator<Item = Value>) -> Result<Vec<QueryResult>> {
        Ok(self.tx.query_all_raw(self.statement(sql, values)).await?)
    }

    fn statement(&self, sql: &str, values: impl IntoIterator<Item = Value>) -> Statement {
        Statement::from_sql_and_values(self.backend, numbered(self.backend, sql), values)
    }
}

/// The table of a kind.
const fn table(kind: Kind) -> &'static str {
    match kind {
        Kind::Role => "roles",
        Kind::User => "users",
        Kind::Team => "teams",
        Kind::Account => "accounts",
        Kind::Template => "templates",
        Kind::Label => "labels",
        Kind::ContactField => "contact_fields",
        Kind::TicketField => "ticket_fields",
        Kind::Contact => "contacts",
        Kind::Conversation => "conversations",
        Kind::Ticket => "tickets",
        Kind::Message => "messages",
        Kind::Comment => "comments",
    }
}

/// `?,?`: so many variables. PostgreSQL looks each up in an index, which it may not for the rows of a `VALUES`.
fn list(values: usize) -> String {
    vec!["?"; values].join(",")
}

/// `(?,?),(?,?)`: the variables of so many rows.
fn values_list(rows: usize, width: usize) -> String {
    let row = format!("({})", vec!["?"; width].join(","));
    vec![row.as_str(); rows].join(",")
}

/// `?` as the database spells it. SQLite keeps the nameless form: it looks named variables up one by one, which makes
/// thousands of them slow.
fn numbered(backend: DbBackend, sql: &str) -> String {
    if backend == DbBackend::Sqlite {
        return sql.to_owned();
    }
    let mut out = String::with_capacity(sql.len() * 2);
    let mut number = 0;
    for c in sql.chars() {
        if c == '?' {
            number += 1;
            out.push_str(&format!("${number}"));
        } else {
            out.push(c);
        }
    }
    out
}

/// A text column that the query makes sure is there.
fn text(row: &QueryResult, index: usize) -> Result<String> {
    row.try_get_by_index::<String>(index).map_err(Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_numbered_for_postgres_alone() {
        let sql = format!("a = ? AND b IN (VALUES {})", values_list(2, 2));
        assert_eq!(numbered(DbBackend::Sqlite, &sql), "a = ? AND b IN (VALUES (?,?),(?,?))");
        assert_eq!(numbered(DbBackend::Postgres, &sql), "a = $1 AND b IN (VALUES ($2,$3),($4,$5))");
    }
}
