//! Table that is a covering index of open tickets by label, in list order, on SQLite.
//!
//! Users view the open tickets of a label, often with further conditions. Without this table, such a query scans the list of all open
//! tickets and skips the tickets of other labels one by one, which costs more than the page itself. Closed tickets are not included: there
//! are many more of them, in lists that are seldom viewed.
//!
//! Triggers maintain the table. The triggers assume that the keys of tickets and labels never change. PostgreSQL has no such table: its
//! writers run concurrently, and each writer would have to lock the conversation to keep the table correct.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::run_all;

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0009_labelled"
    }
}

const TABLE: &str = "CREATE TABLE labelled_tickets (store_id TEXT NOT NULL, label_id TEXT NOT NULL, is_spam BOOLEAN NOT NULL, \
     sort_at BIGINT NOT NULL, ticket_id TEXT NOT NULL, field_marks BIGINT NOT NULL, text_marks BIGINT NOT NULL, \
     PRIMARY KEY (store_id, label_id, is_spam, sort_at, ticket_id)) WITHOUT ROWID";

/// Returns the statement that inserts a row for each label of a ticket's conversation. `row` and `label` name the ticket and the label:
/// each is an alias in `from`, or `NEW` for the row that fired the trigger.
fn put(row: &str, label: &str, from: &str) -> String {
    format!(
        "INSERT INTO labelled_tickets (store_id, label_id, is_spam, sort_at, ticket_id, field_marks, text_marks) \
         SELECT {row}.store_id, {label}.label_id, {row}.is_spam, {row}.sort_at, {row}.id, {row}.field_marks, {row}.text_marks FROM {from}"
    )
}

const LABELS_OF: &str = "conversation_labels l WHERE l.store_id = NEW.store_id AND l.conversation_id = NEW.conversation_id";

/// The condition for the rows of `labelled_tickets` that a ticket had before its update or deletion.
const OLD_ROWS: &str = "store_id = OLD.store_id AND label_id IN \
     (SELECT label_id FROM conversation_labels WHERE store_id = OLD.store_id AND conversation_id = OLD.conversation_id) \
     AND is_spam = OLD.is_spam AND sort_at = OLD.sort_at AND ticket_id = OLD.id";

/// The condition that a ticket was opened, closed, or moved to another conversation.
const TURNED: &str = "(OLD.is_open <> NEW.is_open OR OLD.conversation_id <> NEW.conversation_id)";

fn up() -> Vec<String> {
    let trigger = |name: &str, event: &str, body: &[&str]| format!("CREATE TRIGGER {name} AFTER {event} BEGIN {}; END", body.join("; "));
    let (put_new, drop_old) = (put("NEW", "l", LABELS_OF), format!("DELETE FROM labelled_tickets WHERE {OLD_ROWS}"));
    // Returns the SQL after `FROM` that selects the open ticket of a conversation, of which there is at most one. `row` is NEW or OLD: the
    // row of `conversation_labels` that fired the trigger.
    let open_one = |row: &str| {
        format!(
            "tickets t INDEXED BY tickets_one_open \
             WHERE t.store_id = {row}.store_id AND t.conversation_id = {row}.conversation_id AND t.is_open = TRUE"
        )
    };
    vec![
        TABLE.to_owned(),
        put(
            "t",
            "l",
            "conversation_labels l JOIN tickets t ON t.store_id = l.store_id AND t.conversation_id = l.conversation_id AND t.is_open = TRUE",
        ),
        trigger("labelled_come", "INSERT ON tickets WHEN NEW.is_open = TRUE", &[&put_new]),
        trigger("labelled_go", "DELETE ON tickets WHEN OLD.is_open = TRUE", &[&drop_old]),
        trigger(
            "labelled_move",
            &format!(
                "UPDATE OF is_spam, sort_at, field_marks, text_marks ON tickets WHEN OLD.is_open = TRUE AND NOT {TURNED} AND \
                 (OLD.sort_at <> NEW.sort_at OR OLD.is_spam <> NEW.is_spam OR OLD.field_marks <> NEW.field_marks OR OLD.text_marks <> NEW.text_marks)"
            ),
            &[&format!(
                "UPDATE labelled_tickets SET is_spam = NEW.is_spam, sort_at = NEW.sort_at, field_marks = NEW.field_marks, \
                 text_marks = NEW.text_marks WHERE {OLD_ROWS}"
            )],
        ),
        trigger(
            "labelled_turn",
            &format!("UPDATE OF is_open, conversation_id ON tickets WHEN {TURNED}"),
            &[&format!("{drop_old} AND OLD.is_open = TRUE"), &format!("{put_new} AND NEW.is_open = TRUE")],
        ),
        trigger("label_comes", "INSERT ON conversation_labels", &[&put("t", "NEW", &open_one("NEW"))]),
        trigger(
            "label_goes",
            "DELETE ON conversation_labels",
            &[&format!(
                "DELETE FROM labelled_tickets WHERE store_id = OLD.store_id AND label_id = OLD.label_id AND (is_spam, sort_at, ticket_id) = \
                 (SELECT t.is_spam, t.sort_at, t.id FROM {})",
                open_one("OLD")
            )],
        ),
    ]
}

const TRIGGERS: [&str; 6] = ["labelled_come", "labelled_go", "labelled_move", "labelled_turn", "label_comes", "label_goes"];

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        match manager.get_database_backend() {
            DbBackend::Sqlite => run_all(manager, up()).await,
            _ => Ok(()),
        }
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let mut statements: Vec<String> = TRIGGERS.iter().map(|trigger| format!("DROP TRIGGER {trigger}")).collect();
        statements.push("DROP TABLE labelled_tickets".to_owned());
        match manager.get_database_backend() {
            DbBackend::Sqlite => run_all(manager, statements).await,
            _ => Ok(()),
        }
    }
}
