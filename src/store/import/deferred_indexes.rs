//! Deferred indexes: a large import drops them and builds them again at its end. Called by `service::import` and by the other modules of
//! the import.
//!
//! A new row goes to a different position in every index of its table. Once the indexes outgrow the cache, nearly every insertion into an
//! index reads a page and writes a page: the more rows there are, the slower the import gets. An index that is built from sorted rows at
//! the end is written from its first page to its last.
//!
//! Indexes are dropped only on SQLite. There, other connections still see a dropped index until the commit, and a rollback restores it. On
//! PostgreSQL, readers of the table would wait for the end of the import. Unique indexes and primary keys stay, since they report at which
//! record a value occurs twice. Sorting the rows of an index takes as much space for temporary files as the index does.

use sea_orm::DbBackend;

use crate::{
    domain::ndjson_records::RecordKind,
    store::{
        Result,
        import::{Batch, Import, consistency_checks::texts, import_connection::SORTING},
    },
};

/// The tables whose indexes are dropped.
const TABLES: &str = "'contacts', 'conversations', 'conversation_labels', 'tickets', 'ticket_field_values', 'messages', 'comments'";

/// The indexes that the statements of the module `derived_columns` use. They are rebuilt before these statements run.
pub(super) const READ: [&str; 2] = ["messages_by_conversation", "tickets_by_conversation"];

/// The indexes by which SQLite checks foreign keys to contacts and to conversations. If some record refers to a contact that is not
/// imported yet, every insertion of a contact makes SQLite search for records that refer to the new contact. The same is true of
/// conversations. Without these indexes each search would scan a whole table.
const TO_CONTACTS: [&str; 1] = ["conversations_by_contact"];
const TO_CONVERSATIONS: [&str; 3] = ["tickets_by_conversation", "messages_by_conversation", "comments_by_conversation"];

/// A dropped index that has not been rebuilt yet.
pub(super) struct DroppedIndex {
    name: String,
    sql: String,
}

impl Import {
    /// Receives the size of the input, before the first record. If the input is larger than the database, drops the indexes, to build them
    /// again at the end. Building them scans the whole database, which is acceptable for an import of that size.
    pub async fn expect(&mut self, bytes: u64) -> Result<()> {
        if self.way.backend() != DbBackend::Sqlite {
            return Ok(());
        }
        let size = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let size: i64 = self.first(size, [], |cells| cells.take()).await?.unwrap_or(i64::MAX);
        if i64::try_from(bytes).unwrap_or(i64::MAX) <= size {
            return Ok(());
        }
        // The indexes are built again in the order in which they were created: this order decides which of two equally good indexes the
        // planner chooses.
        let sql = format!(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ({TABLES}) AND sql LIKE 'CREATE INDEX %' ORDER BY rowid"
        );
        for [name, sql] in self.rows(&sql, [], texts).await? {
            self.run(&format!("DROP INDEX \"{name}\""), []).await?;
            self.lifted.push(DroppedIndex { name, sql });
        }
        Ok(())
    }

    /// Builds the indexes by which SQLite finds earlier records that refer to records of this batch, if there may be such earlier records.
    /// Then adds the kinds of the batch's records to `Import::came`, for the next batches.
    pub(super) async fn build_referencing_indexes(&mut self, batch: &Batch) -> Result<()> {
        let before = |kinds: &[RecordKind]| kinds.iter().any(|kind| self.came.contains(kind) || self.had_records(*kind));
        let contacts = !batch.contacts.is_empty() && before(&[RecordKind::Conversation]);
        let conversations = !batch.conversations.is_empty() && before(&[RecordKind::Ticket, RecordKind::Message, RecordKind::Comment]);
        for (kind, empty) in [
            (RecordKind::Conversation, batch.conversations.is_empty()),
            (RecordKind::Ticket, batch.tickets.is_empty()),
            (RecordKind::Message, batch.messages.is_empty()),
            (RecordKind::Comment, batch.comments.is_empty()),
        ] {
            if !empty {
                self.came.insert(kind);
            }
        }
        self.build(|name| (contacts && TO_CONTACTS.contains(&name)) || (conversations && TO_CONVERSATIONS.contains(&name))).await
    }

    /// Builds the dropped indexes whose names `wanted` selects.
    pub(super) async fn build(&mut self, wanted: impl Fn(&str) -> bool) -> Result<()> {
        let (build, wait) = std::mem::take(&mut self.lifted).into_iter().partition(|index: &DroppedIndex| wanted(&index.name));
        self.lifted = wait;
        if !build.is_empty() {
            self.run(SORTING, []).await?;
        }
        for DroppedIndex { sql, .. } in build {
            self.run(&sql, []).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        domain::{
            ndjson_records::{Contact, Conversation, Line, Message},
            time::Timestamp,
        },
        store::fixture::Fixture,
    };

    const AT: &str = "2026-01-01T00:00:00.000Z";

    fn line<T: serde::de::DeserializeOwned>(mut record: serde_json::Value) -> Vec<Line<T>> {
        for property in ["createdAt", "updatedAt"] {
            record[property] = json!(AT);
        }
        vec![Line { number: 1, record: serde_json::from_value(record).unwrap() }]
    }

    fn contact(id: &str) -> Batch {
        let contacts: Vec<Line<Contact>> = line(json!({"id": id, "fullName": "F", "firstName": "F"}));
        Batch { contacts, ..Batch::default() }
    }

    fn conversation(id: &str) -> Batch {
        let conversations: Vec<Line<Conversation>> = line(json!({
            "id": id, "channel": "line", "accountId": "a1", "contactId": "c", "displayName": "D", "referenceId": id, "labelIds": [],
            "isSpam": false,
        }));
        Batch { conversations, ..Batch::default() }
    }

    fn message(id: &str) -> Batch {
        let messages: Vec<Line<Message>> = line(json!({"id": id, "conversationId": "v", "direction": "inbound", "sentAt": AT}));
        Batch { messages, ..Batch::default() }
    }

    async fn built(import: &Import) -> Vec<String> {
        let sql =
            format!("SELECT name, '' FROM sqlite_schema WHERE type = 'index' AND tbl_name IN ({TABLES}) AND sql LIKE 'CREATE INDEX %'");
        let mut names: Vec<String> = import.rows(&sql, [], texts::<2>).await.unwrap().into_iter().map(|[name, _]| name).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn an_index_is_built_once_a_record_may_follow_its_references() {
        let fixture = Fixture::alone().await;
        if fixture.db.backend() != DbBackend::Sqlite {
            return;
        }
        // Removes the fixture's conversations: if the store had conversations, the import would build an index already for the first
        // contact.
        fixture.execute("DELETE FROM conversations").await.unwrap();
        let mut import = fixture.db.begin_import(&fixture.store, Timestamp::from_millis(1)).await.unwrap().unwrap();
        let all = built(&import).await;
        import.expect(u64::MAX).await.unwrap();
        assert_eq!(built(&import).await, [""; 0]);
        let to_conversations: &[&str] = &["comments_by_conversation", "messages_by_conversation", "tickets_by_conversation"];
        let steps: [(Batch, &[&str]); 5] = [
            (contact("b"), &[]),
            (message("m"), &[]),
            (conversation("v"), to_conversations),
            (contact("c"), &["conversations_by_contact"]),
            (conversation("w"), &[]),
        ];
        let mut expected: Vec<&str> = Vec::new();
        for (batch, more) in steps {
            import.put(batch).await.unwrap();
            expected.extend(more);
            expected.sort_unstable();
            assert_eq!(built(&import).await, expected);
        }
        import.build(|_| true).await.unwrap();
        assert_eq!(built(&import).await, all);
        import.rollback().await.unwrap();
    }
}
