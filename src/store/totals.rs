//! How many tickets and contacts a store has, without counting them: the database keeps the numbers as rows come and go
//! (migration `m0008_totals` says how). Called by the lists, for the first page of a walk that counts; and by the server
//! from time to time to put their parts together. Guarantee: a total is what a count in the same statement would be.

use sea_orm::{ConnectionTrait, DbBackend};

use super::{Db, Result, sql::Sql};
use crate::domain::{filters::Shown, ids::StoreId, time::Timestamp};

/// Parts of one total that may lie about before they are put together.
const PARTS: i64 = 8;

impl Db {
    pub(super) async fn contact_total(&self, store: &StoreId) -> Result<u64> {
        let mut sql = Sql::of(store, "SELECT ");
        push_total(&mut sql, ["contacts"]);
        self.total(sql).await
    }

    /// The tickets of this state, spam or not. The snoozed are counted: they are few, and the clock alone ends a snooze.
    pub(super) async fn ticket_total(&self, store: &StoreId, shown: Shown, spam: bool, now: Timestamp) -> Result<u64> {
        let (open, closed) = if spam { ("tickets.open.spam", "tickets.closed.spam") } else { ("tickets.open", "tickets.closed") };
        let mut sql = Sql::of(store, "SELECT ");
        match shown {
            Shown::Open => {
                push_total(&mut sql, [open]);
                sql.push(" - (SELECT COUNT(*) FROM tickets WHERE store_id = $1 AND is_open = TRUE AND is_spam = ");
                sql.flag(spam).push(" AND snoozed_until > ").integer(now.millis()).push(")");
            }
            Shown::Closed => push_total(&mut sql, [closed]),
            Shown::All => push_total(&mut sql, [open, closed]),
        }
        self.total(sql).await
    }

    async fn total(&self, sql: Sql) -> Result<u64> {
        let total: Option<i64> = self.first(sql, |cells| cells.take()).await?;
        Ok(total.and_then(|total| u64::try_from(total).ok()).unwrap_or(0))
    }

    /// Puts the parts of totals together. A reader sees either the parts or their sum, and two processes at once never take
    /// the same part.
    pub async fn fold_totals(&self) -> Result<()> {
        if self.backend() == DbBackend::Postgres {
            let sql = format!(
                "WITH parts AS (DELETE FROM totals t USING (SELECT store_id, name FROM totals GROUP BY store_id, name \
                 HAVING COUNT(*) > {PARTS}) f WHERE t.store_id = f.store_id AND t.name = f.name RETURNING t.store_id, t.name, t.value) \
                 INSERT INTO totals (store_id, name, value) SELECT store_id, name, SUM(value) FROM parts GROUP BY store_id, name"
            );
            let tx = self.begin().await?;
            tx.execute_unprepared(&sql).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

fn push_total<const N: usize>(sql: &mut Sql, names: [&str; N]) {
    let cast = "CAST(COALESCE(SUM(value), 0) AS BIGINT)";
    sql.push(&format!("(SELECT {cast} FROM totals WHERE store_id = $1 AND name IN ")).texts(names).push(")");
}

#[cfg(test)]
mod tests;
