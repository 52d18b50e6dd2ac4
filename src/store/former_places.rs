//! Retention of the former places of rows, which as-of cursors need: those that rows left more than eight days ago are removed.
//!
//! A cursor is accepted for seven days. The day between allows for clocks that differ: a cursor's age is told by the clock of the server, a
//! former place's by that of the database.

use sea_orm::{ColumnTrait, Condition, DbBackend, EntityName, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use crate::store::{
    Db, Result,
    change_log::log::WITNESS,
    entity::{contacts, conversations, former_places, stores, tickets},
    sql::Sql,
};

/// How long former places are kept, in milliseconds.
const KEPT: i64 = 8 * 24 * 60 * 60 * 1000;
/// How many are looked at, and removed, at a time: few, since other writers wait meanwhile on SQLite.
const BATCH: u64 = 500;

impl Db {
    /// Removes the former places that no cursor needs any more; returns how many.
    pub async fn forget_former_places(&self) -> Result<u64> {
        let clock = if self.backend() == DbBackend::Sqlite { "unixepoch() * 1000" } else { "(extract(epoch FROM now()) * 1000)::bigint" };
        let now: Option<i64> = self.first(Sql::fixed(&format!("SELECT {clock}")), |cells| cells.take()).await?;
        let before = now.unwrap_or(0).saturating_sub(KEPT);
        if self.backend() == DbBackend::Sqlite {
            // Their numbers are in the order of time, whatever their list.
            return self.forget_of_list(Condition::all(), before).await;
        }
        let stores: Vec<String> = stores::Entity::find().select_only().column(stores::Column::Id).into_tuple().all(self.read()).await?;
        let mut forgotten = 0;
        for store in &stores {
            for list in [tickets::Entity.table_name(), conversations::Entity.table_name(), contacts::Entity.table_name()] {
                let of_list = Condition::all().add(former_places::Column::StoreId.eq(store)).add(former_places::Column::List.eq(list));
                forgotten += self.forget_of_list(of_list, before).await?;
            }
        }
        Ok(forgotten)
    }

    /// Deletes the former places of rows if their transaction numbers are from another PostgreSQL server, as in a database that was
    /// restored from a dump: a later transaction of this server may have the same number. Walks that began on the other server may then
    /// repeat or skip rows. If the database does not name a server yet, all its numbers are from this one.
    pub async fn adopt_places(&self) -> Result<()> {
        if self.backend() == DbBackend::Sqlite {
            return Ok(());
        }
        let is_own = format!("SELECT origin = {WITNESS} FROM transaction_numbers");
        let is_own = self.first(Sql::fixed(&is_own), |cells| cells.flag()).await?;
        if is_own == Some(true) {
            return Ok(());
        }
        let tx = self.begin().await?;
        if is_own == Some(false) {
            // Of two processes that start at the same time the second waits here, and does the same again.
            tx.run(&Sql::fixed("DELETE FROM transaction_numbers")).await?;
            tx.execute(&former_places::Entity::delete_many()).await?;
            let none = Expr::value(0_i64);
            tx.execute(&tickets::Entity::update_many().col_expr(tickets::Column::PlacedBy, none.clone())).await?;
            tx.execute(&conversations::Entity::update_many().col_expr(conversations::Column::PlacedBy, none.clone())).await?;
            tx.execute(&contacts::Entity::update_many().col_expr(contacts::Column::PlacedBy, none)).await?;
            tracing::info!("the database was restored from another server; walks over lists begin anew");
        }
        tx.run(&Sql::fixed(&format!("INSERT INTO transaction_numbers (origin) SELECT {WITNESS}"))).await?;
        tx.commit().await
    }

    /// The oldest of a list, or of all lists on SQLite, are first in the key, so that the first that stays ends the search.
    async fn forget_of_list(&self, of_list: Condition, before: i64) -> Result<u64> {
        let mut forgotten = 0;
        loop {
            let oldest = former_places::Entity::find()
                .filter(of_list.clone())
                .order_by_asc(former_places::Column::LeftBy)
                .order_by_asc(former_places::Column::RowId)
                .limit(BATCH)
                .all(self.read())
                .await?;
            let expired = oldest.iter().take_while(|place| place.left_at < before);
            let Some(last) = expired.last() else { return Ok(forgotten) };
            let through = Condition::all()
                .add(of_list.clone())
                .add(former_places::Column::LeftBy.lte(last.left_by))
                .add(former_places::Column::LeftAt.lt(before));
            let tx = self.begin().await?;
            forgotten += tx.execute(&former_places::Entity::delete_many().filter(through)).await?;
            tx.commit().await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture::Fixture;

    #[tokio::test]
    async fn places_that_were_left_long_ago_are_forgotten() {
        let fixture = Fixture::alone().await;
        let (db, store) = (&fixture.db, fixture.store.to_string());
        let now = if db.backend() == DbBackend::Sqlite { "unixepoch() * 1000" } else { "(extract(epoch FROM now()) * 1000)::bigint" };
        let now: i64 = db.first(Sql::fixed(&format!("SELECT {now}")), |cells| cells.take()).await.unwrap().unwrap();
        let minute = 60_000;
        // More than one batch; what follows the first that stays is kept, too.
        for number in 0..BATCH as i64 + 10 {
            let old = number < BATCH as i64 + 5;
            let place = former_places::Model {
                store_id: store.clone(),
                list: "tickets".to_owned(),
                left_by: number,
                row_id: format!("t{number}"),
                place_at: 0,
                placed_by: 0,
                left_at: if old { now - KEPT - minute } else { now - KEPT + minute },
            };
            fixture.put(place).await;
        }
        assert_eq!(db.forget_former_places().await.unwrap(), BATCH + 5);
        assert_eq!(former_places::Entity::find().all(db.read()).await.unwrap().len(), 5);
        assert_eq!(db.forget_former_places().await.unwrap(), 0);
    }

    #[tokio::test]
    async fn transaction_numbers_of_another_server_are_forgotten() {
        let fixture = Fixture::alone().await;
        let db = &fixture.db;
        if db.backend() == DbBackend::Sqlite {
            return;
        }
        let placed = async || {
            let sql = Sql::of(&fixture.store, "SELECT placed_by FROM contacts WHERE store_id = $1");
            db.first(sql, |cells| cells.take::<i64>()).await.unwrap().unwrap()
        };
        db.adopt_places().await.unwrap();
        assert!(placed().await > 0, "its own numbers stay");
        fixture.execute("UPDATE transaction_numbers SET origin = 'another'").await.unwrap();
        db.adopt_places().await.unwrap();
        assert_eq!(placed().await, 0);
        fixture.execute("UPDATE contacts SET updated_at = 7").await.unwrap();
        db.adopt_places().await.unwrap();
        assert!(placed().await > 0, "it is adopted once");
    }
}
