//! Counters: a total of tickets or contacts is read from numbers that triggers keep, not counted.
//!
//! Migration `m0008_totals` describes how. A total may consist of several parts; the server, and an import at its end, add them up from
//! time to time. Guarantee: a total equals what a count in the same statement would find.

use sea_orm::DbBackend;

use crate::{
    domain::{filters::ShownTickets, ids::StoreId, time::Timestamp},
    store::{Db, Result, postgres::advisory_locks::AdvisoryLock, sql::Sql},
};

/// How many parts one total may have before they are added up.
const PARTS: i64 = 8;

/// How many contacts the store `$1` has.
pub(in crate::store) fn push_contact_total(sql: &mut Sql) {
    push_total(sql, ["contacts"]);
}

/// How many tickets of this state the store `$1` has, spam or not. Snoozed tickets are counted by a query, not by triggers: they are few,
/// and a snooze ends by the clock alone.
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

/// How many tickets of the store `$1` are snoozed.
pub(in crate::store) fn push_snoozed(sql: &mut Sql, spam: bool, now: Timestamp) {
    sql.push("(SELECT COUNT(*) FROM tickets WHERE store_id = $1 AND is_open = TRUE AND is_spam = ").flag(spam);
    // PostgreSQL expects a third of all snoozes to end after a bound instant, unless it knows the instant; so it would plan the statement
    // each time. About an instant from a subquery it knows nothing, whenever it plans.
    sql.push(" AND snoozed_until > (SELECT CAST(").integer(now.millis()).push(" AS BIGINT)))");
}

impl Db {
    /// The number of tickets of this state, spam or not.
    pub(in crate::store) async fn ticket_total(&self, store: &StoreId, shown: ShownTickets, spam: bool, now: Timestamp) -> Result<u64> {
        let mut sql = Sql::of(store, "SELECT ");
        push_ticket_total(&mut sql, shown, spam, now);
        self.count(sql).await
    }

    /// Adds the parts of totals up. A reader sees either the parts or their sum, and two processes at once never take the same part.
    pub async fn fold_totals(&self) -> Result<()> {
        if self.backend() == DbBackend::Postgres {
            let tx = self.begin().await?;
            tx.all(&Sql::fixed(&AdvisoryLock::Totals.of_transaction()), |_| Ok(())).await?;
            tx.run(&Sql::fixed(&fold_sql(PARTS))).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// The statement that replaces the rows of each total that has more than `parts` rows by one row with their sum.
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
