//! Deletion of old stored responses. The response to a request with an idempotency key is stored, and is sent again if the client repeats
//! the request within a limited time.

use sea_orm::{ColumnTrait, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait, sea_query::Expr};

use crate::{
    domain::time::Timestamp,
    store::{Result, entity::idempotency_keys, transaction::store_transaction::Write},
};

/// The most rows that one write deletes: several times as many as are added between two deletions, but too few to delay the write
/// noticeably.
const BATCH: u64 = 50;

impl Write {
    /// Deletes some of the store's responses that were stored at `since` or before, the oldest first. Does nothing if another transaction
    /// is deleting responses of the store, so that no request waits for it. To be called last in a transaction: until the transaction ends,
    /// no other transaction can delete responses of the store.
    pub async fn prune_stored_responses(&self, since: Timestamp) -> Result<()> {
        if !self.try_named_lock("forget kept answers").await? {
            return Ok(());
        }
        let key = [idempotency_keys::Column::StoreId, idempotency_keys::Column::Operation, idempotency_keys::Column::Key];
        let oldest = idempotency_keys::Entity::find()
            .select_only()
            .columns(key)
            .filter(idempotency_keys::Column::StoreId.eq(self.store()))
            .filter(idempotency_keys::Column::CreatedAt.lte(since))
            .order_by_asc(idempotency_keys::Column::CreatedAt)
            .limit(BATCH);
        let among = Expr::tuple(key.map(Expr::col)).in_subquery(oldest.into_query());
        let of_store = idempotency_keys::Column::StoreId.eq(self.store());
        self.execute(&idempotency_keys::Entity::delete_many().filter(of_store).filter(among)).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::BATCH;
    use crate::{
        domain::{clock::Clock, fake_clock_and_test_rules::MovableClock, time::Timestamp},
        store::{fixture::Fixture, transaction::store_transaction::StoredResponse},
    };

    fn clock(at: i64) -> Arc<dyn Clock> {
        MovableClock::at(at)
    }

    #[tokio::test]
    async fn old_responses_are_pruned_in_batches_and_only_in_their_store() {
        let (fixture, other) = (Fixture::new().await, Fixture::new().await);
        let keep = async |at: i64, keys: &[String]| {
            let write = fixture.db.write(&fixture.store, &clock(at)).await.unwrap();
            for key in keys {
                write.keep("op", key, StoredResponse { request_hash: "h".to_owned(), body: vec![] }).unwrap();
            }
            write.commit().await.unwrap();
        };
        let old: Vec<String> = (0..BATCH + 5).map(|i| format!("old{i}")).collect();
        keep(5, &old).await;
        keep(6, &["young".to_owned()]).await;
        let prune = async |fixture: &Fixture| {
            let write = fixture.db.write(&fixture.store, &clock(9)).await.unwrap();
            write.prune_stored_responses(Timestamp::from_millis(5)).await.unwrap();
            write.commit().await.unwrap();
        };
        prune(&other).await;
        for left in [BATCH + 5, 5, 0] {
            let write = fixture.db.write(&fixture.store, &clock(9)).await.unwrap();
            let mut held = 0_u64;
            for key in &old {
                held += u64::from(write.kept("op", key, Timestamp::from_millis(0)).await.unwrap().is_some());
            }
            assert_eq!(held, left);
            assert!(write.kept("op", "young", Timestamp::from_millis(0)).await.unwrap().is_some());
            drop(write);
            prune(&fixture).await;
        }
    }
}
