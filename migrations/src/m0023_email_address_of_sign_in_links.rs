//! Column for the e-mail address to which a sign-in link was sent.
//!
//! A link with an address is valid only while its user has this e-mail address. A link that existed before this migration, or that an
//! older build creates, has no address. An older build does not check the address. So rolling this migration back deletes the links that
//! have an address: otherwise they would stay valid after the user gets another address.

use sea_orm_migration::{prelude::*, sea_orm::DbBackend};

use crate::{run, run_all};

pub struct Migration;

impl MigrationName for Migration {
    fn name(&self) -> &str {
        "m0023_links_by_email"
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
-- The link is valid while this is the e-mail address of the user. NULL: the link is valid whatever the address of the user is.
ALTER TABLE grants ADD COLUMN sent_to TEXT
",
        )
        .await?;
        // `LOWER` ignores the case of ASCII letters only: on SQLite always, on PostgreSQL with the collation "C".
        let email = if manager.get_database_backend() == DbBackend::Sqlite { "email" } else { "email COLLATE \"C\"" };
        run_all(manager, vec![format!("CREATE INDEX users_by_email ON users (LOWER({email}))")]).await
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        let statements =
            ["DROP INDEX users_by_email", "DELETE FROM grants WHERE sent_to IS NOT NULL", "ALTER TABLE grants DROP COLUMN sent_to"];
        run_all(manager, statements.map(str::to_owned).to_vec()).await
    }
}
