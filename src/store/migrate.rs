//! Schema migrations: applying and reverting them, and refusing a database of another program or of a newer version. A sandbox is a
//! database for tests whose clock can be advanced (see `store::sandbox_database`). A database can become a sandbox only when its tables are
//! created, and remains one.

use counterpart_migrations::{MigrationStatus, Migrator, MigratorTrait};
use sea_orm::{
    ActiveValue::Set,
    ConnectionTrait, DatabaseConnection, DatabaseTransaction, DbBackend, EntityTrait, Statement,
    sea_query::{Order, Query},
};

use crate::store::{Db, Error, Result, db::TransactionKind, entity::sandbox, postgres::advisory_locks::AdvisoryLock};

/// The table in which SeaORM lists the applied migrations.
pub(in crate::store) const MIGRATIONS_TABLE: &str = "seaql_migrations";

/// The migration that creates the table `sandbox`.
const SANDBOX_MIGRATION: &str = "m0019_sandbox";

/// The id of the only row of the table `sandbox`. The database is a sandbox if the row exists.
pub(in crate::store) const SANDBOX_ROW_ID: i64 = 1;

impl Db {
    /// Applies all migrations that are missing. If several processes start at the same time, one migrates and the others wait for it.
    pub async fn migrate_up(&self) -> Result<()> {
        self.migrate(false).await
    }

    /// Applies to a sandbox all migrations that it lacks. A database without tables becomes a sandbox. Refuses a database that has tables
    /// and is no sandbox, without changing it.
    pub async fn migrate_sandbox_up(&self) -> Result<()> {
        self.migrate(true).await
    }

    async fn migrate(&self, as_sandbox: bool) -> Result<()> {
        let (connection, tx) = self.begin_alone(TransactionKind::Read).await?;
        let names = applied(&tx).await?;
        if as_sandbox {
            refuse_ordinary(&tx, &names).await?;
        }
        tx.commit().await?;
        connection.close().await?;
        if !known().all(|name| names.contains(&name)) {
            let (connection, tx) = self.begin_migration().await?;
            // Another process may have created the tables while this one waited for the lock.
            let names = applied(&tx).await?;
            if as_sandbox {
                refuse_ordinary(&tx, &names).await?;
            }
            Migrator::up(&tx, None).await?;
            if as_sandbox && names.is_empty() {
                sandbox::Entity::insert(sandbox::ActiveModel { id: Set(SANDBOX_ROW_ID), ahead: Set(0) })
                    .exec_without_returning(&tx)
                    .await?;
            }
            tx.commit().await?;
            connection.close().await?;
        }
        Ok(())
    }

    /// Begins a transaction for a migration. Until it ends, no other process migrates.
    pub(in crate::store) async fn begin_migration(&self) -> Result<(DatabaseConnection, DatabaseTransaction)> {
        let (connection, tx) = self.begin_alone(TransactionKind::Write).await?;
        if self.backend() == DbBackend::Postgres {
            tx.execute_unprepared(&AdvisoryLock::Migration.of_transaction()).await?;
        }
        Ok((connection, tx))
    }

    /// Reverts the newest `steps` migrations. The data in the tables and columns that they added is lost. Refuses to drop the table that
    /// marks a sandbox: the database would then count as an ordinary one, with records that may be dated in the future.
    pub async fn migrate_down(&self, steps: u32) -> Result<()> {
        if self.is_distributed() {
            let reason = "the tables are distributed over several nodes, which no migration takes back; restore a back-up instead";
            return Err(Error::Unusable(reason.to_owned()));
        }
        let (connection, tx) = self.begin_migration().await?;
        let names = applied(&tx).await?;
        let takes_mark = names.iter().rev().take(steps as usize).any(|name| name == SANDBOX_MIGRATION);
        if takes_mark && is_marked(&tx).await? {
            let reason = "the database is a sandbox for good, and taking this migration back would make it an ordinary one; make a new \
                          database instead";
            return Err(Error::Unusable(reason.to_owned()));
        }
        Migrator::down(&tx, Some(steps)).await?;
        tx.commit().await?;
        Ok(connection.close().await?)
    }

    /// Returns every migration's name, oldest first, and whether it was applied.
    pub async fn migrations(&self) -> Result<Vec<(String, bool)>> {
        let (connection, tx) = self.begin_alone(TransactionKind::Read).await?;
        let all = Migrator::get_migration_with_status(&tx).await?;
        tx.commit().await?;
        connection.close().await?;
        Ok(all.into_iter().map(|one| (one.name().to_owned(), one.status() == MigrationStatus::Applied)).collect())
    }
}

/// Returns whether the database is a sandbox. The table `sandbox` must exist.
async fn is_marked(connection: &impl ConnectionTrait) -> Result<bool> {
    Ok(sandbox::Entity::find_by_id(SANDBOX_ROW_ID).one(connection).await?.is_some())
}

/// Refuses a database with tables that is no sandbox.
async fn refuse_ordinary(connection: &impl ConnectionTrait, applied: &[String]) -> Result<()> {
    let may_be_marked = applied.iter().any(|name| name == SANDBOX_MIGRATION);
    if applied.is_empty() || (may_be_marked && is_marked(connection).await?) {
        return Ok(());
    }
    let what_helps = "name a database without tables, which becomes a sandbox, or leave `--sandbox` out";
    Err(Error::Unusable(format!("it is no sandbox, and a database becomes one only when it is made; {what_helps}")))
}

/// Returns the names of the migrations of this version of the program.
fn known() -> impl Iterator<Item = String> {
    Migrator::migrations().into_iter().map(|migration| migration.name().to_owned())
}

/// Returns the names of the applied migrations, oldest first. Fails on a SQLite file with the tables of another program, and on a schema
/// that a newer version of this program created.
async fn applied(connection: &impl ConnectionTrait) -> Result<Vec<String>> {
    let backend = connection.get_database_backend();
    let first_table = match backend {
        DbBackend::Sqlite => {
            format!("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name <> '{MIGRATIONS_TABLE}'")
        }
        _ => format!("SELECT '{MIGRATIONS_TABLE}' AS name WHERE to_regclass('{MIGRATIONS_TABLE}') IS NOT NULL"),
    };
    let Some(first) = connection.query_one_raw(Statement::from_string(backend, first_table)).await? else { return Ok(Vec::new()) };
    let first: String = first.try_get("", "name")?;
    if first != MIGRATIONS_TABLE {
        return Err(Error::Unusable(format!("the file holds the table `{first}` of another program; name another file")));
    }
    let versions = Query::select().column("version").from(MIGRATIONS_TABLE).order_by("version", Order::Asc).take();
    let rows = connection.query_all(&versions).await?;
    let applied = rows.iter().map(|row| row.try_get("", "version")).collect::<std::result::Result<Vec<String>, _>>()?;
    refuse_newer(&applied)?;
    Ok(applied)
}

/// Fails if a migration was applied that this version does not have.
pub(in crate::store) fn refuse_newer(applied: &[String]) -> Result<()> {
    let Some(newer) = applied.iter().find(|name| known().all(|known| known != **name)) else { return Ok(()) };
    let what_helps = "run that version, or restore a back-up from before it";
    Err(Error::Unusable(format!("its schema has `{newer}`, which a newer version of counterpart made; {what_helps}")))
}
