//! Counters (materialised totals): triggers maintain the numbers of tickets and contacts, so that a total is read and not counted.
//!
//! On PostgreSQL each change adds a row, so that writers do not wait for each other, and a total is the sum of its rows (parts). From time
//! to time, and after an import, the server replaces the parts of a total by one row. The migration `m0008_totals` has the triggers.
//! Guarantee: a total equals the result of a `COUNT` in the same statement.

use sea_orm::{ActiveValue::Set, ColumnTrait, DbBackend, EntityTrait, ExprTrait, QueryFilter, QuerySelect, QueryTrait};

use crate::{
    domain::{ids::StoreId, ticket_filters::ShownTickets, time::Timestamp},
    store::{
        Db, Result, entity::totals, parameterised_sql::Sql, postgres::advisory_locks::AdvisoryLock, row_decoding::Cells,
        transaction::system_transaction::SystemTransaction,
    },
};

/// The number of parts that a total may have before one row replaces them.
const TOTAL_PARTS: i64 = 8;

/// Adds to a statement a subquery for the number of contacts of the store whose id is `$1`.
pub(in crate::store) fn push_contact_total(sql: &mut Sql) {
    push_total(sql, ["contacts"]);
}

/// Adds to a statement an expression for a number of tickets: those of the store whose id is `$1` that are in the state `shown` and whose
/// `is_spam` is `spam`. Snoozed tickets are counted by a query, not by triggers: they are few, and a snooze ends at its time without a
/// write.
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

/// Adds to a statement a subquery for the number of snoozed tickets whose `is_spam` is `spam`, of the store whose id is `$1`.
pub(in crate::store) fn push_snoozed(sql: &mut Sql, spam: bool, now: Timestamp) {
    sql.push("(SELECT COUNT(*) FROM tickets WHERE store_id = $1 AND is_open = TRUE AND is_spam = ").flag(spam);
    // The time is in a subquery, so that PostgreSQL plans the statement without knowing the time. With a bound value, PostgreSQL's generic
    // plan, which is for any value, would assume that a third of all snoozes end after the value. A plan for the actual value would look
    // cheaper than the generic plan, so PostgreSQL would plan the statement each time.
    sql.push(" AND snoozed_until > (SELECT CAST(").integer(now.millis()).push(" AS BIGINT)))");
}

impl Db {
    /// Returns the number of tickets that are in the state `shown` and whose `is_spam` is `spam`.
    pub(in crate::store) async fn ticket_total(&self, store: &StoreId, shown: ShownTickets, spam: bool, now: Timestamp) -> Result<u64> {
        let mut sql = Sql::of(store, "SELECT ");
        push_ticket_total(&mut sql, shown, spam, now);
        self.count(sql).await
    }

    /// Replaces the parts of each total by one row with their sum, on PostgreSQL. A reader sees either the parts or their sum. An advisory
    /// lock keeps two processes from replacing parts at the same time, since their transactions could deadlock.
    pub async fn compact_totals(&self) -> Result<()> {
        if self.backend() == DbBackend::Sqlite {
            return Ok(());
        }
        let split = |of: Option<&StoreId>| {
            let query = totals::Entity::find().select_only().columns([totals::Column::StoreId, totals::Column::Name]);
            let query = query.apply_if(of, |query, store| query.filter(totals::Column::StoreId.eq(store)));
            query.group_by(totals::Column::StoreId).group_by(totals::Column::Name).having(totals::Column::Value.count().gt(TOTAL_PARTS))
        };
        let read = |cells: &mut Cells<'_>| Ok((cells.take::<StoreId>()?, cells.take::<String>()?));
        for (store, name) in self.across_stores(split, read).await? {
            let tx = self.begin().await?;
            tx.all(&Sql::fixed(&AdvisoryLock::Totals.of_transaction()), |_| Ok(())).await?;
            fold(&tx, &store, &name).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// Replaces the parts of a total by one row with their sum.
async fn fold(tx: &SystemTransaction, store: &StoreId, name: &str) -> Result<()> {
    use totals::{ActiveModel, Column, Entity};
    let mut delete = Entity::delete_many().filter(Column::StoreId.eq(store)).filter(Column::Name.eq(name)).into_query();
    delete.returning_col(Column::Value);
    let sum = tx.returned(&delete, |cells| cells.take::<i64>()).await?.into_iter().sum();
    let total = ActiveModel { store_id: Set(store.to_string()), name: Set(name.to_owned()), value: Set(sum), ..Default::default() };
    tx.execute(&Entity::insert(total)).await?;
    Ok(())
}

pub(in crate::store) fn push_total<const N: usize>(sql: &mut Sql, names: [&str; N]) {
    let cast = "CAST(COALESCE(SUM(value), 0) AS BIGINT)";
    sql.push(&format!("(SELECT {cast} FROM totals WHERE store_id = $1 AND name IN ")).texts(names).push(")");
}

#[cfg(test)]
mod tests;
