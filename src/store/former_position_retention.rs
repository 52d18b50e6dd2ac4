//! Retention of former sort positions (table `former_places`): a position that a row left more than eight days ago is deleted.
//!
//! A cursor of an as-of page (a page in the order that its list had when the pagination began) needs the positions that rows have left
//! since then. A cursor is accepted for seven days. The extra day allows for a difference between clocks: the server's clock measures the
//! age of a cursor, the database's clock that of a position.

use sea_orm::{ActiveValue::Set, ColumnTrait, Condition, DbBackend, EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::Expr};

use crate::store::{
    Db, Result,
    change_log::reader::DATABASE_FINGERPRINT,
    entity::{contacts, conversations, former_sort_positions, stores, tickets, transaction_id_origin},
    parameterised_sql::Sql,
};

/// How long former positions are kept, in milliseconds.
const KEPT: i64 = 8 * 24 * 60 * 60 * 1000;
/// How many former positions are read, and deleted, at a time. The number is small, since on SQLite other writers wait for the deletion.
const BATCH: u64 = 500;

impl Db {
    /// Deletes the former sort positions that no valid cursor needs any more. Returns the number of deleted rows.
    pub async fn prune_former_positions(&self) -> Result<u64> {
        let clock = if self.backend() == DbBackend::Sqlite { "unixepoch() * 1000" } else { "(extract(epoch FROM now()) * 1000)::bigint" };
        let now: Option<i64> = self.first(Sql::fixed(&format!("SELECT {clock}")), |cells| cells.take()).await?;
        let before = now.unwrap_or(0).saturating_sub(KEPT);
        if self.backend() == DbBackend::Sqlite {
            // On SQLite `left_by` is one sequence for all stores, so one call of `prune_positions` covers all stores. On PostgreSQL the
            // index by `left_by` begins with the store, so each store needs a call.
            return self.prune_positions(Condition::all(), before).await;
        }
        let stores: Vec<String> =
            self.select(stores::Entity::find().select_only().column(stores::Column::Id), |cells| cells.take()).await?;
        let mut pruned = 0;
        for store in &stores {
            pruned += self.prune_positions(Condition::all().add(former_sort_positions::Column::StoreId.eq(store)), before).await?;
        }
        Ok(pruned)
    }

    /// Deletes all former positions and clears the transaction ids of the current positions (`placed_by`), if another PostgreSQL server
    /// assigned these ids. This is so in a database that was restored from a dump. If the ids stayed, later transactions of this server
    /// could get the same ids. After the deletion, a client that began its pagination on the other server may see rows twice or miss rows.
    /// If the table `transaction_numbers` names no server yet, all transaction ids come from this server.
    pub async fn discard_foreign_positions(&self) -> Result<()> {
        if self.backend() == DbBackend::Sqlite {
            return Ok(());
        }
        let own = self.first(Sql::fixed(&format!("SELECT {DATABASE_FINGERPRINT}")), |cells| cells.take::<String>()).await?;
        let own = own.unwrap_or_default();
        let origin = self.find_one(transaction_id_origin::Entity::find()).await?.map(|row| row.origin);
        if origin.as_ref() == Some(&own) {
            return Ok(());
        }
        let tx = self.begin().await?;
        if origin.is_some() {
            // If two processes start at the same time, the second waits here for the first, and then does the same again, which is
            // harmless.
            tx.execute(&transaction_id_origin::Entity::delete_many()).await?;
            tx.execute(&former_sort_positions::Entity::delete_many()).await?;
            let none = Expr::value(0_i64);
            tx.execute(&tickets::Entity::update_many().col_expr(tickets::Column::PlacedBy, none.clone())).await?;
            tx.execute(&conversations::Entity::update_many().col_expr(conversations::Column::PlacedBy, none.clone())).await?;
            tx.execute(&contacts::Entity::update_many().col_expr(contacts::Column::PlacedBy, none)).await?;
            tracing::info!("the database was restored from another server; paginations begin anew");
        }
        tx.execute(&transaction_id_origin::Entity::insert(transaction_id_origin::ActiveModel { origin: Set(own) })).await?;
        tx.commit().await
    }

    /// Deletes the former positions that rows left before `before`, of one store or of all stores. Returns their number. The index lists
    /// the positions in the order in which rows left them, so the first position that is kept ends the search.
    async fn prune_positions(&self, of_stores: Condition, before: i64) -> Result<u64> {
        let mut pruned = 0;
        loop {
            let oldest = self
                .find_all(
                    former_sort_positions::Entity::find()
                        .filter(of_stores.clone())
                        .order_by_asc(former_sort_positions::Column::LeftBy)
                        .limit(BATCH),
                )
                .await?;
            let expired = oldest.iter().take_while(|place| place.left_at < before);
            let Some(last) = expired.last() else { return Ok(pruned) };
            let through = Condition::all()
                .add(of_stores.clone())
                .add(former_sort_positions::Column::LeftBy.lte(last.left_by))
                .add(former_sort_positions::Column::LeftAt.lt(before));
            pruned += self.execute(&former_sort_positions::Entity::delete_many().filter(through)).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixture::Fixture;

    #[tokio::test]
    async fn old_former_positions_are_deleted() {
        let fixture = Fixture::alone().await;
        let (db, store) = (&fixture.db, fixture.store.to_string());
        let now = if db.backend() == DbBackend::Sqlite { "unixepoch() * 1000" } else { "(extract(epoch FROM now()) * 1000)::bigint" };
        let now: i64 = db.first(Sql::fixed(&format!("SELECT {now}")), |cells| cells.take()).await.unwrap().unwrap();
        let minute = 60_000;
        // More than one batch of old positions, followed by five newer positions, which must stay.
        for number in 0..BATCH as i64 + 10 {
            let old = number < BATCH as i64 + 5;
            let place = former_sort_positions::Model {
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
        assert_eq!(db.prune_former_positions().await.unwrap(), BATCH + 5);
        assert_eq!(db.find_all(former_sort_positions::Entity::find()).await.unwrap().len(), 5);
        assert_eq!(db.prune_former_positions().await.unwrap(), 0);
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
        db.discard_foreign_positions().await.unwrap();
        assert!(placed().await > 0, "its own numbers stay");
        fixture.execute("UPDATE transaction_numbers SET origin = 'another'").await.unwrap();
        db.discard_foreign_positions().await.unwrap();
        assert_eq!(placed().await, 0);
        fixture.execute("UPDATE contacts SET updated_at = 7").await.unwrap();
        db.discard_foreign_positions().await.unwrap();
        assert!(placed().await > 0, "it is adopted once");
    }
}
