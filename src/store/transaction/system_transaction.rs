//! The connection of a write transaction, and write transactions that belong to no store (tenant). For example, they claim deliveries, number events, create stores, and delete old
//! rows.
//!
//! On SQLite such a transaction is a savepoint on the connection of the single writer, as the write of a request is (see `group_commit`).
//! It does not run on a pooled connection of the library sqlx. When the disk is full or fails, SQLite rolls a transaction back by itself.
//! sqlx would not notice that, and its connection would keep the write lock for good. On PostgreSQL the transaction runs on a pooled
//! connection.

use sea_orm::DbBackend;

use crate::store::{
    Db, Result,
    db::{OnStatement, Writes},
    parameterised_sql::Sql,
    postgres::pipelined_transaction::BegunTransaction,
    row_decoding::Cells,
    sqlite::group_commit::GroupMember,
};

/// A write transaction that belongs to no store. If it is dropped without [`SystemTransaction::commit`], it is rolled back.
pub struct SystemTransaction {
    on: TransactionConnection,
    on_statement: Option<OnStatement>,
}

/// The connection on which the statements of a write transaction run.
pub(super) enum TransactionConnection {
    Sqlite(GroupMember),
    Postgres(Box<BegunTransaction>),
}

impl TransactionConnection {
    pub fn backend(&self) -> DbBackend {
        match self {
            Self::Sqlite(_) => DbBackend::Sqlite,
            Self::Postgres(_) => DbBackend::Postgres,
        }
    }
}

impl Db {
    /// Begins a write transaction that belongs to no store. On SQLite it waits for the writers that came before it.
    pub async fn begin(&self) -> Result<SystemTransaction> {
        Ok(SystemTransaction { on: self.begin_write().await?, on_statement: self.on_statement.clone() })
    }

    /// Begins a write transaction of either kind.
    pub(super) async fn begin_write(&self) -> Result<TransactionConnection> {
        Ok(match &self.writes {
            Writes::Sqlite(writer) => TransactionConnection::Sqlite(writer.turn().await?),
            Writes::Postgres(kept) => TransactionConnection::Postgres(Box::new(kept.begin().await?)),
        })
    }
}

impl SystemTransaction {
    pub(in crate::store) fn backend(&self) -> DbBackend {
        self.on.backend()
    }

    fn count_statement(&self) {
        if let Some(on_statement) = &self.on_statement {
            on_statement();
        }
    }

    /// Runs a statement and returns all its rows, decoded.
    pub(in crate::store) async fn all<T>(&self, sql: &Sql, decode: impl Fn(&mut Cells<'_>) -> Result<T>) -> Result<Vec<T>> {
        self.count_statement();
        match &self.on {
            TransactionConnection::Sqlite(turn) => turn.all(sql, &decode),
            TransactionConnection::Postgres(begun) => begun.rows(sql).await?.iter().map(|row| decode(&mut Cells::postgres(row))).collect(),
        }
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(in crate::store) async fn run(&self, sql: &Sql) -> Result<u64> {
        self.count_statement();
        match &self.on {
            TransactionConnection::Sqlite(turn) => turn.run(sql),
            TransactionConnection::Postgres(begun) => begun.run(sql).await,
        }
    }

    /// Runs statements without values, for tests.
    #[cfg(test)]
    pub(crate) async fn script(&self, statements: &str) -> Result<()> {
        match &self.on {
            TransactionConnection::Sqlite(turn) => turn.script(statements),
            TransactionConnection::Postgres(begun) => begun.script(statements).await,
        }
    }

    pub async fn commit(self) -> Result<()> {
        match self.on {
            TransactionConnection::Sqlite(turn) => turn.commit().await,
            TransactionConnection::Postgres(begun) => begun.commit(&[]).await.map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{
        domain::{ids::StoreId, stores_and_accounts::Store, time::Timestamp},
        store::{Error, db::Writes, fixture::Fixture, parameterised_sql::Sql},
    };

    fn store(id: &str, name_bytes: usize) -> Store {
        Store {
            id: StoreId::from(id),
            name: "n".repeat(name_bytes),
            currency: "THB".to_owned(),
            reopen_window_hours: 24,
            created_at: Timestamp::from_millis(0),
        }
    }

    /// When the file may not grow, SQLite rolls the transaction back by itself. The writer must notice that and release the write lock.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_disk_leaves_no_lock_behind() {
        let fixture = Fixture::new().await;
        let Writes::Sqlite(writer) = &fixture.db.writes else { return };
        fixture.db.prove_usable(Timestamp::from_millis(0)).await.unwrap();
        assert!(!fixture.db.failed_within(Duration::from_secs(60)));
        let full = |is_full: bool| async move {
            let turn = writer.turn().await.unwrap();
            let pages = turn.all(&Sql::fixed("PRAGMA page_count"), &|cells| cells.take::<i64>()).unwrap()[0];
            let most = if is_full { pages } else { 1 << 30 };
            turn.all(&Sql::fixed(&format!("PRAGMA max_page_count = {most}")), &|cells| cells.take::<i64>()).unwrap();
            turn.commit().await.unwrap();
        };
        for round in 0..2 {
            full(true).await;
            let refused = fixture.db.insert_store(&store("large", 200_000)).await;
            assert!(matches!(refused, Err(Error::Failing(_))), "{round}: {refused:?}");
            // A smaller write still succeeds. It must not hide the failure.
            fixture.db.prove_usable(Timestamp::from_millis(round)).await.unwrap();
            assert!(fixture.db.failed_within(Duration::from_secs(60)));
            full(false).await;
        }
        assert!(fixture.db.insert_store(&store("large", 200_000)).await.unwrap());
        // An acknowledged write is in the file for every other connection.
        let file = rusqlite::Connection::open(fixture.url.trim_start_matches("sqlite://")).unwrap();
        let stored: i64 = file.query_row("SELECT COUNT(*) FROM stores WHERE id = 'large'", (), |row| row.get(0)).unwrap();
        assert_eq!(stored, 1);
        // The write lock is free.
        file.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_group_member_whose_transaction_was_rolled_back_writes_nothing_more() {
        let fixture = Fixture::new().await;
        let Writes::Sqlite(writer) = &fixture.db.writes else { return };
        let insert = |id: &str, bytes: usize| {
            let name = "n".repeat(bytes);
            Sql::fixed(&format!(
                "INSERT INTO stores (id, name, currency, reopen_window_hours, created_at) VALUES ('{id}', '{name}', 'THB', 24, 0)"
            ))
        };
        let others = writer.turn().await.unwrap();
        others.run(&insert("others", 1)).unwrap();
        let others = tokio::spawn(others.commit());
        let turn = writer.turn().await.unwrap();
        let pages = turn.all(&Sql::fixed("PRAGMA page_count"), &|cells| cells.take::<i64>()).unwrap()[0];
        turn.all(&Sql::fixed(&format!("PRAGMA max_page_count = {pages}")), &|cells| cells.take::<i64>()).unwrap();
        assert!(turn.run(&insert("large", 200_000)).is_err());
        // Without the check in the writer, SQLite would commit this statement by itself, since the transaction of the turn has ended.
        assert!(turn.run(&insert("small", 1)).is_err());
        assert!(turn.commit().await.is_err());
        // If `others` was in the same commit group as `turn`, it is rolled back too. If its group was committed earlier, its row stays.
        let kept = others.await.unwrap().is_ok();
        let found = fixture.db.stores().await.unwrap().into_iter().map(|store| store.id).collect::<Vec<_>>();
        assert!(!found.contains(&StoreId::from("small")) && !found.contains(&StoreId::from("large")), "{found:?}");
        assert_eq!(found.contains(&StoreId::from("others")), kept);
        let turn = writer.turn().await.unwrap();
        turn.run(&insert("after", 1)).unwrap();
        turn.commit().await.unwrap();
    }
}
