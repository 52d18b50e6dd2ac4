//! Replay protection for the signed requests of bridges. A bridge is an external program that connects a channel account; it signs its
//! requests to this server. An accepted request is stored until its timestamp is too old to be accepted again.

use sea_orm::{ActiveValue::Set, ColumnTrait, EntityTrait, QueryFilter, QuerySelect, sea_query::OnConflict};

use crate::{
    domain::{inbound_signatures::AcceptedSignature, time::Timestamp},
    store::{Db, Result, entity::accepted_signatures, transaction::store_transaction::Write},
};

impl Write {
    /// Stores a signed request as accepted. Returns `false` if it was accepted before. If several transactions store the same request at
    /// the same time, one of them gets `true`, and the others wait until that transaction ends.
    pub async fn accept_signature(&self, signature: &AcceptedSignature) -> Result<bool> {
        use accepted_signatures::Column::{AccountId, Digest, StoreId};
        let row = accepted_signatures::ActiveModel {
            store_id: Set(self.store().to_string()),
            account_id: Set(signature.account_id.to_string()),
            digest: Set(signature.digest.clone()),
            expires_at: Set(signature.expires_at.millis()),
        };
        let known = OnConflict::columns([StoreId, AccountId, Digest]).do_nothing().to_owned();
        Ok(self.execute(&accepted_signatures::Entity::insert(row).on_conflict(known)).await? == 1)
    }
}

impl Db {
    /// Deletes the signed requests that have expired; returns their number.
    pub async fn prune_signatures(&self, now: Timestamp) -> Result<u64> {
        let expired = accepted_signatures::Column::ExpiresAt.lte(now);
        // Usually no request has expired, and a read finds that out without waiting for writers.
        let first = self.find_one(accepted_signatures::Entity::find().filter(expired.clone()).limit(1)).await?;
        if first.is_none() {
            return Ok(0);
        }
        self.execute(&accepted_signatures::Entity::delete_many().filter(expired)).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        domain::{clock::Clock, fake_clock_and_test_rules::MovableClock},
        store::fixture::Fixture,
    };

    fn signature(account: &str, digest: &str, expires_at: i64) -> AcceptedSignature {
        AcceptedSignature { account_id: account.into(), digest: digest.to_owned(), expires_at: Timestamp::from_millis(expires_at) }
    }

    #[tokio::test]
    async fn a_signature_is_accepted_once_for_each_account_and_store() {
        let (fixture, other) = (Fixture::new().await, Fixture::new().await);
        let clock: Arc<dyn Clock> = MovableClock::at(0);
        let accept = async |fixture: &Fixture, account: &str, commits: bool| {
            let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
            let accepted = write.accept_signature(&signature(account, "d", 1000)).await.unwrap();
            if commits {
                write.commit().await.unwrap();
            }
            accepted
        };
        // A transaction that is rolled back stores no signature.
        assert!(accept(&fixture, "a1", false).await);
        assert!(accept(&fixture, "a1", true).await);
        assert!(!accept(&fixture, "a1", true).await);
        assert!(accept(&fixture, "a2", true).await && accept(&other, "a1", true).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn only_one_of_concurrent_requests_with_the_same_signature_is_accepted() {
        let fixture = Arc::new(Fixture::new().await);
        let clock: Arc<dyn Clock> = MovableClock::at(0);
        let tries = (0..8).map(|_| {
            let (fixture, clock) = (fixture.clone(), clock.clone());
            tokio::spawn(async move {
                let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
                let accepted = write.accept_signature(&signature("a1", "same", 1000)).await.unwrap();
                write.commit().await.unwrap();
                usize::from(accepted)
            })
        });
        let mut accepted = 0;
        for one in tries.collect::<Vec<_>>() {
            accepted += one.await.unwrap();
        }
        assert_eq!(accepted, 1);
    }

    #[tokio::test]
    async fn expired_signatures_are_forgotten() {
        let fixture = Fixture::alone().await;
        let clock: Arc<dyn Clock> = MovableClock::at(0);
        let write = fixture.db.write(&fixture.store, &clock).await.unwrap();
        for (digest, expires_at) in [("old", 10), ("due", 20), ("young", 21)] {
            assert!(write.accept_signature(&signature("a1", digest, expires_at)).await.unwrap());
        }
        write.commit().await.unwrap();
        assert_eq!(fixture.db.prune_signatures(Timestamp::from_millis(9)).await.unwrap(), 0);
        assert_eq!(fixture.db.prune_signatures(Timestamp::from_millis(20)).await.unwrap(), 2);
        assert_eq!(fixture.rows_of("accepted_signatures").await, 1);
    }
}
