//! Column for the grants (permissions) of tokens, and table of accepted requests that were signed by bridges, the HTTP services of channels
//! (replay protection).
//!
//! A token that existed before this migration, or that an older build creates, may do everything. A token with fewer grants is stored
//! under the kind `narrow_token`. Older builds do not look for this kind, so they refuse the token. Rolling this migration back deletes
//! the tokens with fewer grants: otherwise they would have every grant if the migration were applied again.

use sea_orm_migration::prelude::*;

use crate::{run, run_all};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0018_narrow_tokens"
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
-- The names of grants, separated by commas, or `all`.
ALTER TABLE grants ADD COLUMN can TEXT DEFAULT 'all' NOT NULL;
CREATE TABLE accepted_signatures (
    store_id {text} NOT NULL REFERENCES stores (id),
    -- The account whose bridge signed. No foreign key: the bridge may be removed before this row expires.
    account_id {text} NOT NULL,
    -- SHA-256 of `webhook-id` and `webhook-timestamp`, in hexadecimal.
    digest {text} NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (store_id, account_id, digest)
) {clustered};
CREATE INDEX accepted_signatures_by_expiry ON accepted_signatures (expires_at)
",
        )
        .await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let statements = ["DROP TABLE accepted_signatures", "DELETE FROM grants WHERE can <> 'all'", "ALTER TABLE grants DROP COLUMN can"];
        run_all(manager, statements.map(str::to_owned).to_vec()).await
    }
}
