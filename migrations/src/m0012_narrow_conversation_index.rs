//! Narrower index of a contact's conversations on SQLite: the index no longer contains the sort key, and each query sorts the
//! conversations.
//!
//! Each message moves its conversation to the head of its contact's list. If the index contained the sort key, each message would have to
//! update the index: that takes two searches and writes one more database page, which measurably slows messages down. A contact has few
//! conversations, and sorting them costs nothing measurable. Only a page of a contact with thousands of conversations costs milliseconds.
//! `m0026_cheaper_sends` does the same on PostgreSQL.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::run_all;

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0012_threads"
    }
}

async fn index(manager: &SchemaManager<'_>, columns: &str) -> Result<(), DbErr> {
    if manager.get_database_backend() != DbBackend::Sqlite {
        return Ok(());
    }
    let drop = "DROP INDEX conversations_by_contact".to_owned();
    run_all(manager, vec![drop, format!("CREATE INDEX conversations_by_contact ON conversations ({columns})")]).await
}

#[sea_orm_migration::async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        index(manager, "store_id, contact_id").await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        index(manager, "store_id, contact_id, sort_at, id").await
    }
}
