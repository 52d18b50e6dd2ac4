//! Recorded events: their numbers, and reading them back.
//!
//! A write records its events without a number. Whoever wants to read numbers the committed ones first, one process at a
//! time; so a reader that has seen a number has seen all below it, and writers never wait for the sequence.

use sea_orm::{ConnectionTrait, DbBackend, Statement};

use super::{Db, Result, sql::Sql};
use crate::domain::ids::StoreId;

/// Held by whoever numbers on PostgreSQL, until the transaction ends. The number is this program's own.
const NUMBER_LOCK: &str = "SELECT pg_advisory_xact_lock(7305809155955061)";

const UNNUMBERED: &str = "SELECT 1 FROM events WHERE sequence IS NULL LIMIT 1";

const NUMBER: &str = "UPDATE events SET sequence = numbered.sequence FROM (\
    SELECT e.position, ROW_NUMBER() OVER (PARTITION BY e.store_id ORDER BY e.position) \
        + COALESCE((SELECT MAX(m.sequence) FROM events m WHERE m.store_id = e.store_id), 0) AS sequence \
    FROM events e WHERE e.sequence IS NULL) AS numbered WHERE events.position = numbered.position";

/// A recorded event with its number.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub sequence: i64,
    pub body: Vec<u8>,
}

impl Db {
    /// Numbers the events that were committed without one.
    pub async fn number_events(&self) -> Result<()> {
        if self.first(Sql::fixed(UNNUMBERED), |cells| cells.take::<i32>()).await?.is_none() {
            return Ok(());
        }
        let tx = self.begin().await?;
        if self.backend() == DbBackend::Postgres {
            tx.execute_unprepared(NUMBER_LOCK).await?;
        }
        tx.execute_raw(Statement::from_string(self.backend(), NUMBER)).await?;
        Ok(tx.commit().await?)
    }

    /// At most `limit` events behind a number, in their order.
    pub async fn events_after(&self, store: &StoreId, after: i64, limit: i64) -> Result<Vec<Recorded>> {
        let mut sql = Sql::of(store, "SELECT sequence, body FROM events WHERE store_id = $1 AND sequence > ");
        sql.integer(after).push(" ORDER BY sequence LIMIT ").integer(limit);
        self.all(sql, |cells| Ok(Recorded { sequence: cells.take()?, body: cells.bytes()? })).await
    }
}
