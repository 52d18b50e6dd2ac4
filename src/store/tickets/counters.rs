//! Counters (materialised totals): triggers maintain the numbers of tickets and contacts, so that a total is read and not counted.
//!
//! The migration `m0008_totals` describes the triggers. On PostgreSQL a total may consist of several rows (parts). The server adds up the
//! parts of each total from time to time, and an import does so after its commit. Guarantee: a total equals the result of a `COUNT` in the
//! same statement.

use sea_orm::DbBackend;

use crate::{
    domain::{filters::ShownTickets, ids::StoreId, time::Timestamp},
    store::{Db, Result, postgres::advisory_locks::AdvisoryLock, sql::Sql},
};

/// The number of parts that a total may have before they are added up.
const TOTAL_PARTS: i64 = 8;

/// Adds to a statement a subquery for the number of contacts of the store `$1`.
pub(in crate::store) fn push_contact_total(sql: &mut Sql) {
    push_total(sql, ["contacts"]);
}

/// Adds to a statement an expression for the number of tickets of the store `$1` that are in the state `shown` and whose `is_spam` is
/// `spam`. Snoozed tickets are counted by a query, not by triggers: they are few, and a snooze ends at its time without a write.
pub(in crate::store) fn push_ticket_total(sql: &mut Sql, shown: ShownTickets, spam: bool, now: Timestamp) {
    let (open, closed) = if spam { ("tickets.open.spam", "tickets.closed.spam") } else { ("tickets.open", "tickets.closed") };
    match shown {
        ShownTickets::Open => {
            push_total(sql, [open]);
            sql.push(" - ");
            push_snoozed(sql, spam, now);
        }
        ShownTickets::Closed => push_total(sql, [closed]),
        ShownTickets::All => push_total(sql, [open, closed]),
    }
}

/// Adds to a statement a subquery for the number of snoozed tickets of the store `$1` whose `is_spam` is `spam`.
pub(in crate::store) fn push_snoozed(sql: &mut Sql, spam: bool, now: Timestamp) {
    sql.push("(SELECT COUNT(*) FROM tickets WHERE store_id = $1 AND is_open = TRUE AND is_spam = ").flag(spam);
    // The instant is a subquery, whose result PostgreSQL does not know when it plans. For a bound value, PostgreSQL's generic plan would
    // estimate that a third of all snoozes end after it. A plan for the actual value would look cheaper, and PostgreSQL would plan the
    // statement each time.
    sql.push(" AND snoozed_until > (SELECT CAST(").integer(now.millis()).push(" AS BIGINT)))");
}

impl Db {
    /// Returns the number of tickets that are in the state `shown` and whose `is_spam` is `spam`.
    pub(in crate::store) async fn ticket_total(&self, store: &StoreId, shown: ShownTickets, spam: bool, now: Timestamp) -> Result<u64> {
        let mut sql = Sql::of(store, "SELECT ");
        push_ticket_total(&mut sql, shown, spam, now);
        self.count(sql).await
    }

    /// Adds up the parts of totals on PostgreSQL. A reader sees either the parts or their sum. An advisory lock keeps other processes from
    /// doing so at the same time: the transactions could wait for each other (deadlock).
    pub async fn compact_totals(&self) -> Result<()> {
        if self.backend() == DbBackend::Postgres {
            let tx = self.begin().await?;
            tx.all(&Sql::fixed(&AdvisoryLock::Totals.of_transaction()), |_| Ok(())).await?;
            tx.run(&Sql::fixed(&fold_sql(TOTAL_PARTS))).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// Returns the statement that replaces the rows of each total that has more than `parts` rows by one row with their sum.
fn fold_sql(parts: i64) -> String {
    format!(
        "WITH parts AS (DELETE FROM totals t USING (SELECT store_id, name FROM totals GROUP BY store_id, name \
         HAVING COUNT(*) > {parts}) f WHERE t.store_id = f.store_id AND t.name = f.name RETURNING t.store_id, t.name, t.value) \
         INSERT INTO totals (store_id, name, value) SELECT store_id, name, SUM(value) FROM parts GROUP BY store_id, name"
    )
}

pub(in crate::store) fn push_total<const N: usize>(sql: &mut Sql, names: [&str; N]) {
    let cast = "CAST(COALESCE(SUM(value), 0) AS BIGINT)";
    sql.push(&format!("(SELECT {cast} FROM totals WHERE store_id = $1 AND name IN ")).texts(names).push(")");
}

#[cfg(test)]
mod tests;
