//! Runs statements from SeaORM entities (descriptions of tables), on the connections of `store`.

use sea_orm::{ActiveModelTrait, EntityTrait, QuerySelect, Select, TryIntoModel, sea_query::LockType};

use crate::store::{
    Db, Result,
    row_decoding::Cells,
    sql_from_entities::{ReadStatement, WriteStatement, change_sql, insert, model, select_sql, update},
    transaction::{store_transaction::Write, system_transaction::SystemTransaction},
};

impl Db {
    /// Runs a query for rows of an entity, and returns them.
    pub(in crate::store) async fn find_all<E>(&self, query: Select<E>) -> Result<Vec<E::Model>>
    where
        E: EntityTrait<Model: Send + 'static>,
        E::ActiveModel: ActiveModelTrait<Entity = E> + TryIntoModel<E::Model>,
    {
        self.select(query, model::<E>).await
    }

    /// Runs a query for rows of an entity, and returns the first row.
    pub(in crate::store) async fn find_one<E>(&self, query: Select<E>) -> Result<Option<E::Model>>
    where
        E: EntityTrait<Model: Send + 'static>,
        E::ActiveModel: ActiveModelTrait<Entity = E> + TryIntoModel<E::Model>,
    {
        Ok(self.find_all(query.limit(1)).await?.pop())
    }

    /// Runs a query and returns its rows, each decoded by `decode`.
    pub(in crate::store) async fn select<T, D>(&self, query: impl ReadStatement, decode: D) -> Result<Vec<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        self.all(select_sql(query, self.backend())?, decode).await
    }

    /// Like [`Db::select`], for a query that may read any number of rows, since no key limits them.
    pub(in crate::store) async fn scan<T, D>(&self, query: impl ReadStatement, decode: D) -> Result<Vec<T>>
    where
        T: Send + 'static,
        D: Fn(&mut Cells<'_>) -> Result<T> + Send + 'static,
    {
        let mut sql = select_sql(query, self.backend())?;
        sql.unbounded();
        self.all(sql, decode).await
    }

    /// Runs a statement in a transaction of its own. Returns the number of rows that it changed.
    pub(in crate::store) async fn execute(&self, change: &impl WriteStatement) -> Result<u64> {
        let tx = self.begin().await?;
        let changed = tx.execute(change).await?;
        tx.commit().await?;
        Ok(changed)
    }
}

impl SystemTransaction {
    /// Runs a statement and returns the number of rows that it changed.
    pub(in crate::store) async fn execute(&self, change: &impl WriteStatement) -> Result<u64> {
        self.run(&change_sql(change, self.backend())?).await
    }

    /// Runs a statement that changes rows and has a `RETURNING` clause. Returns the rows of this clause, each decoded by `decode`.
    pub(in crate::store) async fn returned<T>(
        &self,
        change: &impl WriteStatement,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.all(&change_sql(change, self.backend())?, decode).await
    }

    /// Runs a query and returns its rows, each decoded by `decode`.
    pub(in crate::store) async fn select<T>(
        &self,
        query: impl ReadStatement,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.all(&select_sql(query, self.backend())?, decode).await
    }
}

impl Write {
    pub(in crate::store) async fn insert(&self, row: impl ActiveModelTrait) -> Result<()> {
        self.run(insert(row, self.backend())?).await?;
        Ok(())
    }

    /// Like [`Write::insert`], but does not wait for the outcome (see [`Write::run_deferred`]).
    pub(in crate::store) fn insert_deferred(&self, row: impl ActiveModelTrait) -> Result<()> {
        self.run_deferred(insert(row, self.backend())?)
    }

    /// Updates one row. The primary key in `row` selects the row, and the other columns that are set in `row` are written.
    pub(in crate::store) async fn update(&self, row: impl ActiveModelTrait) -> Result<()> {
        self.run(update(row, self.backend())?).await?;
        Ok(())
    }

    /// Like [`Write::update`], but does not wait for the outcome (see [`Write::run_deferred`]).
    pub(in crate::store) fn update_deferred(&self, row: impl ActiveModelTrait) -> Result<()> {
        self.run_deferred(update(row, self.backend())?)
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(in crate::store) async fn execute(&self, change: &impl WriteStatement) -> Result<u64> {
        self.run(change_sql(change, self.backend())?).await
    }

    /// Like [`Write::execute`], but does not wait for the outcome (see [`Write::run_deferred`]).
    pub(in crate::store) fn execute_deferred(&self, change: &impl WriteStatement) -> Result<()> {
        self.run_deferred(change_sql(change, self.backend())?)
    }

    /// Runs a statement that changes rows and has a `RETURNING` clause. Returns the rows of this clause, each decoded by `decode`.
    pub(in crate::store) async fn returned<T>(
        &self,
        change: &impl WriteStatement,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.run_returning(change_sql(change, self.backend())?, decode).await
    }

    /// Runs a query and returns its rows, each decoded by `decode`.
    pub(in crate::store) async fn select<T>(
        &self,
        query: impl ReadStatement,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.all(select_sql(query, self.backend())?, decode).await
    }

    /// Like [`Write::select`], and locks the rows with `FOR NO KEY UPDATE` until the end of the transaction. The comment on
    /// `Sql::lock_rows` explains the kind of lock. SQLite needs no row locks, since it has only one writer at a time.
    pub(in crate::store) async fn select_for_update<T>(
        &self,
        query: impl ReadStatement,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.select_locked(query, LockType::NoKeyUpdate, decode).await
    }

    /// Like [`Write::select`], and takes a shared lock on the rows: until the end of the transaction other transactions may also take a
    /// shared lock on the rows, but not change them.
    pub(in crate::store) async fn select_shared<T>(
        &self,
        query: impl ReadStatement,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.select_locked(query, LockType::Share, decode).await
    }

    async fn select_locked<T>(
        &self,
        query: impl ReadStatement,
        lock: LockType,
        decode: impl Fn(&mut Cells<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut query = query.into_select();
        query.lock(lock);
        let mut sql = select_sql(query, self.backend())?;
        sql.note_lock();
        self.all(sql, decode).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{domain::clock::SystemClock, store::fixture::Fixture};

    #[tokio::test]
    async fn a_query_for_an_empty_list_of_ids_finds_nothing() {
        let fixture = Fixture::new().await;
        fixture.ticket("t", |_| {}).await;
        let write = fixture.db.write(&fixture.store, &(Arc::new(SystemClock) as _)).await.unwrap();
        assert!(write.known_users(&[]).await.unwrap().is_empty());
        assert!(write.account_users(&[]).await.unwrap().is_empty());
        assert!(write.label_texts(&[]).await.unwrap().is_empty());
        write.lock_accounts_shared(&[]).await.unwrap();
        write.lock_conversations_of(&[]).await.unwrap();
    }
}
