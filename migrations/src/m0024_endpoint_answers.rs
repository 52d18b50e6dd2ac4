//! Column for the response of a webhook endpoint to a failed delivery attempt.
//!
//! Attempts from before this migration and attempts of an older build have no response.

use sea_orm_migration::prelude::*;

use crate::{run, run_all};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0024_endpoint_answers"
    }
}

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    fn use_transaction(&self) -> Option<bool> {
        Some(true)
    }

    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run(
            manager,
            r"
-- The beginning of the body of a response that reports a failure.
ALTER TABLE attempts ADD COLUMN answer TEXT
",
        )
        .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        run_all(manager, vec!["ALTER TABLE attempts DROP COLUMN answer".to_owned()]).await
    }
}
