//! Column for the time at which a message was sent according to its channel. The column is set only if this time is too long after the
//! receipt of the message to be the sort key.
//!
//! `messages.sent_at` stays the sort key: lists, tickets and counters use it and its index.

use sea_orm_migration::prelude::*;

use crate::run_all;

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0016_channel_sent_at"
    }
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run_all(manager, vec!["ALTER TABLE messages ADD COLUMN channel_sent_at BIGINT".to_owned()]).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run_all(manager, vec!["ALTER TABLE messages DROP COLUMN channel_sent_at".to_owned()]).await
    }
}
