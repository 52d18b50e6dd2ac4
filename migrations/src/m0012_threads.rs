//! On SQLite the conversations of a contact are found by the contact alone, and put in order when they are listed.
//!
//! Each message moves its conversation to the head of its contact's list. An index that holds the place in that list is changed by
//! each: two searches, and a page that no other message of the commit has, a tenth of what a message takes. A contact has a few
//! conversations, and to put these in order costs nothing that can be measured. One with a thousand pays a millisecond for each
//! page, one with ten thousand nine. On PostgreSQL messages come no faster without it, and the index stays what it is.

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
