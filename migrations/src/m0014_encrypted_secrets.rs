//! Column for the id of the key that a stored secret is encrypted with. NULL: the secret is not encrypted.
//!
//! A build from before this migration cannot decrypt a secret. If a process of such a build is still running, it signs webhooks and bridge
//! requests with the encrypted bytes. A new process of such a build refuses to start on the newer schema. Rolling this migration back
//! deletes the encrypted secrets: without the id of the key, no build could decrypt them.

use sea_orm_migration::prelude::*;

use crate::{run, run_all};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0014_sealed_secrets"
    }
}

const TABLES: [&str; 3] = ["webhook_secrets", "bridge_secrets", "server_secrets"];

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        for table in TABLES {
            run(manager, &format!("ALTER TABLE {table} ADD COLUMN key_id {{text}}")).await?;
        }
        Ok(())
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let taken_back =
            |table: &&str| [format!("DELETE FROM {table} WHERE key_id IS NOT NULL"), format!("ALTER TABLE {table} DROP COLUMN key_id")];
        run_all(manager, TABLES.iter().flat_map(taken_back).collect()).await
    }
}
