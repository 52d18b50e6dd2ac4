//! Indexes that a large import builds at its end. Called by the rest of the import.
//!
//! A row that comes goes to a place of its own in every index of its table, and once these outgrow the cache nearly each
//! place is a page to fetch and one to write: the more rows there are, the slower they come. Sorted at the end, an index is
//! written from its first page to its last.
//!
//! SQLite alone, where an index that is gone is gone for nobody else before the commit, and back if there is none. On
//! PostgreSQL whoever reads the table would wait for the end of the import. Unique indexes stay, since they say at which
//! record a value is there twice; so do primary keys. Sorting takes as much room for temporary files as the index does.

use sea_orm::DbBackend;

use super::{Batch, Import, check::texts, way::SORTING};
use crate::{domain::records::Kind, store::Result};

/// Their indexes are lifted.
const TABLES: &str = "'contacts', 'conversations', 'conversation_labels', 'tickets', 'ticket_field_values', 'messages', 'comments'";

/// What is derived is derived through these.
pub(super) const READ: [&str; 2] = ["messages_by_conversation", "tickets_by_conversation"];

/// Where one record refers to another that has not come, SQLite looks with every further row of the latter's kind for those
/// that wait for it: through these, or through all there are.
const TO_CONTACTS: [&str; 1] = ["conversations_by_contact"];
const TO_CONVERSATIONS: [&str; 3] = ["tickets_by_conversation", "messages_by_conversation", "comments_by_conversation"];

/// An index that waits.
pub(super) struct Lifted {
    name: String,
    sql: String,
}

impl Import {
    /// Says before the first record how large the input is. Where there is more of it than of the database, which then may
    /// be walked once, indexes are built at the end.
    pub async fn expect(&mut self, bytes: u64) -> Result<()> {
        if self.backend != DbBackend::Sqlite {
            return Ok(());
        }
        let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let size: i64 = self.first(size, [], |cells| cells.take()).await?.unwrap_or(i64::MAX);
        if i64::try_from(bytes).unwrap_or(i64::MAX) <= size {
            return Ok(());
        }
        // In the order in which they were made: between two as good the planner goes by it.
        let sql = format!(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ({TABLES}) AND sql LIKE 'CREATE INDEX %' ORDER BY rowid"
        );
        for [name, sql] in self.rows(&sql, [], texts).await? {
            self.run(&format!("DROP INDEX \"{name}\""), []).await?;
            self.lifted.push(Lifted { name, sql });
        }
        Ok(())
    }

    /// Has the indexes by which a batch's records are looked for that referred to them before they came.
    pub(super) async fn meet(&mut self, batch: &Batch) -> Result<()> {
        let before = |kinds: &[Kind]| kinds.iter().any(|kind| self.came.contains(kind) || self.held(*kind));
        let contacts = !batch.contacts.is_empty() && before(&[Kind::Conversation]);
        let conversations = !batch.conversations.is_empty() && before(&[Kind::Ticket, Kind::Message, Kind::Comment]);
        for (kind, empty) in [
            (Kind::Conversation, batch.conversations.is_empty()),
            (Kind::Ticket, batch.tickets.is_empty()),
            (Kind::Message, batch.messages.is_empty()),
            (Kind::Comment, batch.comments.is_empty()),
        ] {
            if !empty {
                self.came.insert(kind);
            }
        }
        self.build(|name| (contacts && TO_CONTACTS.contains(&name)) || (conversations && TO_CONVERSATIONS.contains(&name))).await
    }

    /// Builds those of the lifted indexes that are wanted.
    pub(super) async fn build(&mut self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let (build, wait) = std::mem::take(&mut self.lifted).into_iter().partition(|index: &Lifted| wanted(&index.name));
        self.lifted = wait;
        if !build.is_empty() {
            self.run(SORTING, []).await?;
        }
        for Lifted { sql, .. } in build {
            self.run(&sql, []).await?;
        }
        Ok(())
    }
}
