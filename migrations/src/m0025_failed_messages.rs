//! Table of failed messages (dead letters), which can be listed and sent again, and a column for the reason why a queued message waits.
//!
//! Messages that failed before this migration are listed, but cannot be sent again: their outbox entries were deleted. Messages that a
//! concurrent process of an earlier version gives up are not listed: that process writes only the state of the message.

use sea_orm_migration::prelude::*;

use crate::{drop_all, run, run_all};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0025_failed_messages"
    }
}

const UP: &str = r#"
-- No foreign keys are needed: a row is inserted in the transaction that updates its message, and messages are never deleted.
CREATE TABLE failed_messages (
    store_id {text} NOT NULL,
    message_id {text} NOT NULL,
    -- The outbox entry as JSON, for a further attempt. NULL: the message failed before outbox entries were kept.
    parcel TEXT,
    -- The number of attempts. NULL: unknown.
    attempts BIGINT,
    failed_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, message_id)
);
CREATE INDEX failed_messages_by_time ON failed_messages (store_id, failed_at, message_id);
INSERT INTO failed_messages (store_id, message_id, failed_at) SELECT store_id, id, sent_at FROM messages WHERE delivery = 'failed';
-- Why the last attempt did not succeed.
ALTER TABLE outbound ADD COLUMN reason TEXT
"#;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run(manager, UP).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run_all(manager, vec!["ALTER TABLE outbound DROP COLUMN reason".to_owned()]).await?;
        drop_all(manager, &["failed_messages"]).await
    }
}
