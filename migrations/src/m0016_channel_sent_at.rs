//! Column for the time at which a message was sent according to its channel. The column is set only if this time is more than five minutes
//! after the receipt of the message. In this case the clock of the channel is wrong, and `messages.sent_at` is the time of receipt.
//!
//! `messages.sent_at` stays the sort key, which lists, tickets and counters use.

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
