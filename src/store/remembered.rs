//! Totals of filtered tickets that were counted before, and hold as long as nothing changed that they depend on.
//!
//! A first page tells how many tickets pass its filter, and of many to count those costs a hundred times what the page does. Who looks
//! at an inbox asks again and again for the same few filters, though, and most messages change no total. So a total is kept with a mark that
//! the database computes: how often its tickets, labels and values changed (migration `m0010_changed`), and how many are snoozed, since the
//! clock ends a snooze without a change. A first page brings the mark of its own moment along, and what was counted at the same mark is
//! told again, to those too who wait for it to be counted. Guarantee: a total that is told again is what a count within the statement of
//! the page would be, but in the minute after the database was put back in time under the server, where the same mark may come again: no
//! total is kept for longer.
//!
//! Called by `tickets`.

use sea_orm::DbBackend;

use super::{
    Db, Result,
    minute::Name,
    sql::Sql,
    ticket_filters::sieved,
    totals::{push_snoozed, push_total},
};
use crate::domain::{
    field_tests::FieldTest,
    filters::{Shown, TicketFilter},
    ids::StoreId,
    time::Timestamp,
};

/// What the tickets, the labels and the values of a store were like at a moment.
pub(super) type Mark = String;

/// A total, and the mark of the moment at which it was counted.
pub(super) type Counted = (Mark, u64);

impl Db {
    /// What a total of this filter is kept under, if it is: who waits for an answer changes with every message, and the tickets of one
    /// conversation are soon counted.
    pub(super) fn name_of_total(&self, store: &StoreId, filter: &TicketFilter, shown: Shown, tests: &[FieldTest]) -> Option<Name> {
        // Whatever else a filter goes by has to change the mark: a member that comes is one to be considered here.
        let TicketFilter {
            statuses: _,
            conversation_id: None,
            account_ids: _,
            assignee_user_ids: _,
            handled_by_user_ids: _,
            resolution_statuses: _,
            unassigned: _,
            is_follow_up: _,
            is_spam: _,
            labels: _,
            fields: _,
            waiting_minutes: None,
            opened_at: _,
        } = filter
        else {
            return None;
        };
        // At one instant, whenever it is asked for.
        let mut all = self.ticket_conditions(store, filter, shown, Timestamp::from_millis(0));
        if let Some(labels) = &filter.labels {
            self.push_labels(&mut all, labels);
        }
        self.push_field_tests(&mut all, &sieved(tests), None);
        Some(self.counted().name(&all))
    }

    /// The mark of the store `$1`. A standby's is its own: it may show one of two changes, and its primary the other.
    pub(super) fn push_mark(&self, sql: &mut Sql, shown: Shown, spam: bool, now: Timestamp) {
        sql.push("CAST(");
        push_total(sql, ["tickets.changed"]);
        sql.push(" AS TEXT)");
        if shown == Shown::Open {
            sql.push(" || '-' || CAST(");
            push_snoozed(sql, spam, now);
            sql.push(" AS TEXT)");
        }
        if self.backend() == DbBackend::Postgres {
            sql.push(" || CASE WHEN pg_is_in_recovery() THEN '-' ELSE '' END");
        }
    }

    /// The total of that name that was counted at that mark.
    pub(super) fn counted_at(&self, name: Name, mark: &str) -> Option<u64> {
        self.counted().of(name, |(then, total)| (then == mark).then_some(*total))
    }

    /// Counts what a statement counts, and keeps it with the mark of that moment.
    pub(super) async fn count_and_keep(&self, name: Name, mut count: Sql, push_mark: impl Fn(&mut Sql)) -> Result<u64> {
        let counting = count.split_off(0);
        count.push("SELECT (").push(&counting).push("), ");
        push_mark(&mut count);
        let found = self.first(count, |cells| Ok((cells.take::<i64>()?, cells.take::<Mark>()?))).await?;
        let Some((total, mark)) = found else { return Ok(0) };
        let total = u64::try_from(total).unwrap_or(0);
        self.counted().keep(name, (mark, total));
        Ok(total)
    }
}

#[cfg(test)]
mod tests;
