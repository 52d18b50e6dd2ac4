//! Choice of the driving index of a filtered ticket list, by which the statement finds its rows: the index of a condition that few tickets
//! fulfil, or else the index that has the tickets in the order of the list.
//!
//! Without this choice, the databases would scan the whole list for a label or a field value that only one ticket has. SQLite, which has no
//! statistics here, would do so for assignees with one ticket, too. So a statement first counts, up to a limit, the tickets that fulfil
//! each condition of the filter. A condition that many tickets fulfil is cached for a minute and not counted again. If the number of its
//! tickets drops within that minute, the list is scanned, which costs more but returns the same rows.
//!
//! On SQLite the open tickets of one label already form a list of their own (table `labelled_tickets`). A list of the open tickets of one
//! label is read from there, unless another condition of the filter has few tickets, and fewer than the label.
//!
//! The statement of a total reads its list to the end, whereas that of a page stops early. So for a total, the index of a condition saves
//! time even if more tickets fulfil the condition: up to a certain share of the list (`few_tickets_for_total`). If no condition was found
//! for the page, and this share is larger than the limit for a page, a second statement counts the tickets that fulfil each condition, up
//! to this share.

use std::{borrow::Cow, collections::BTreeSet};

use sea_orm::DbBackend;

use crate::{
    domain::{
        ids::StoreId,
        ticket_field_filters::{FieldTest, Test},
        ticket_filters::{LabelOperator, ShownTickets, TicketFilter},
        time::Timestamp,
    },
    store::{
        Db, Result,
        parameterised_sql::{SUBQUERY_FENCE, Sql},
        tickets::filter::single_label,
    },
};

/// A condition that few tickets fulfil. Its index can drive the statement of a list.
pub(in crate::store) enum DrivingCondition<'a> {
    Value(&'a FieldTest),
    /// The ticket has any of these labels.
    Labels(BTreeSet<&'a str>),
    /// SQLite only: the ticket has this label, whose open tickets already form a list. If no other condition has fewer tickets, this list
    /// is scanned.
    Label(&'a str),
    /// The ticket has one of these assignees. On SQLite only, where the statement has to name the index.
    Assignees(BTreeSet<&'a str>),
}

/// If at most this number of tickets fulfils a condition, the statement reads them by the index of the condition instead of reading the
/// list in order.
const FEW_ON_SQLITE: i64 = 200;
/// The value of [`FEW_ON_SQLITE`] for PostgreSQL. It is higher, since on PostgreSQL reading the list in order costs more per ticket: the
/// index has no Bloom filters, so each row has to be fetched.
const FEW_ON_POSTGRES: i64 = 1000;

/// The cost of looking up a ticket by its id, as a multiple of the cost of skipping it while the list is read in order. To skip a ticket,
/// SQLite reads only the ticket's Bloom filters in the index; PostgreSQL has to fetch its row.
const LOOKUP_COST_ON_SQLITE: i64 = 40;
const LOOKUP_COST_ON_POSTGRES: i64 = 10;

impl Db {
    /// Of the filter's conditions that have an index, returns the one that the fewest tickets fulfil. `None`: more than `few` tickets
    /// fulfil each of them, or the tickets to read already form a list of their own (those of a conversation or, on SQLite, of a label).
    pub(in crate::store) async fn find_driving_condition<'a>(
        &self,
        store: &StoreId,
        filter: &'a TicketFilter,
        shown: ShownTickets,
        tests: &'a [FieldTest],
        few: i64,
    ) -> Result<Option<DrivingCondition<'a>>> {
        let sqlite = self.backend() == DbBackend::Sqlite;
        if filter.conversation_id.is_some() {
            return Ok(None);
        }
        let named = indexable_conditions(sqlite, filter, shown, tests).into_iter().map(|condition| {
            let mut source = Sql::of(store, &few.to_string());
            self.push_source(&mut source, &condition, shown);
            (self.broad_conditions.key(&source), condition)
        });
        let mut candidates: Vec<(u64, DrivingCondition<'_>)> = named.filter(|(key, _)| !self.broad_conditions.contains(*key)).collect();
        if candidates.is_empty() {
            return Ok(None);
        }
        let mut sql = Sql::of(store, "SELECT ");
        if few > self.few_tickets() {
            sql.unbounded();
        }
        for (i, (_, condition)) in candidates.iter().enumerate() {
            if i > 0 {
                sql.push(", ");
            }
            if let DrivingCondition::Labels(labels) = condition {
                // If more than `few` conversations have the labels, the condition counts as one that many tickets fulfil, without a look-up
                // of their tickets.
                sql.push("CASE WHEN (SELECT COUNT(*) FROM (SELECT 1 FROM conversation_labels l WHERE l.store_id = $1 AND l.label_id IN ");
                sql.texts(labels.iter().copied()).limit(few + 1).push(") AS few) > ").integer(few);
                sql.push(" THEN ").integer(few + 1).push(" ELSE ");
            }
            sql.push("(SELECT COUNT(*) FROM (SELECT 1");
            self.push_source(&mut sql, condition, shown);
            sql.limit(few + 1).push(") AS few)");
            if let DrivingCondition::Labels(_) = condition {
                sql.push(" END");
            }
        }
        let number = candidates.len();
        let counts = self.first(sql, move |cells| (0..number).map(|_| cells.take::<i64>()).collect::<Result<Vec<_>>>()).await?;
        let mut fewest = None;
        for (at, count) in counts.unwrap_or_default().into_iter().enumerate() {
            if count > few {
                self.broad_conditions.insert(candidates[at].0);
            } else if fewest.is_none_or(|(fewest, _)| count < fewest) {
                fewest = Some((count, at));
            }
        }
        let fewest = fewest.map(|(_, at)| candidates.swap_remove(at).1);
        Ok(fewest.filter(|condition| !matches!(condition, DrivingCondition::Label(_))))
    }

    /// Returns the greatest number of tickets that counts as few for a page.
    pub(in crate::store) fn few_tickets(&self) -> i64 {
        if self.backend() == DbBackend::Sqlite { FEW_ON_SQLITE } else { FEW_ON_POSTGRES }
    }

    /// Returns up to how many tickets are looked up one by one when the total of a list of `listed` tickets is counted. With more tickets
    /// it is cheaper to read the list in sequence.
    pub(in crate::store) fn few_tickets_for_total(&self, listed: u64) -> i64 {
        // Each limit makes a different SQL text. So there are few limits: each is four times the previous limit.
        let dearer = if self.backend() == DbBackend::Sqlite { LOOKUP_COST_ON_SQLITE } else { LOOKUP_COST_ON_POSTGRES };
        let mut few = self.few_tickets();
        while few.saturating_mul(4).saturating_mul(dearer) <= i64::try_from(listed).unwrap_or(i64::MAX) {
            few *= 4;
        }
        few
    }

    /// Returns a condition whose index can drive the statement of the total: one that fewer tickets fulfil than a certain share of the
    /// list. Called if [`Db::find_driving_condition`] found no condition for the page. Returns `None` for a filter by a conversation or by
    /// assignees: the tickets of a conversation or an assignee already form a list of their own, usually a short list.
    pub(in crate::store) async fn find_driving_condition_of_total<'a>(
        &self,
        store: &StoreId,
        filter: &'a TicketFilter,
        shown: ShownTickets,
        tests: &'a [FieldTest],
        now: Timestamp,
    ) -> Result<Option<DrivingCondition<'a>>> {
        let sqlite = self.backend() == DbBackend::Sqlite;
        let short = filter.conversation_id.is_some() || !filter.assignee_user_ids.is_empty();
        if short || indexable_conditions(sqlite, filter, shown, tests).is_empty() {
            return Ok(None);
        }
        match self.few_tickets_for_total(self.ticket_total(store, shown, filter.is_spam, now).await?) {
            few if few > self.few_tickets() => self.find_driving_condition(store, filter, shown, tests, few).await,
            _ => Ok(None),
        }
    }

    /// Restricts a statement to the tickets that fulfil `condition`: on SQLite by a condition that is added to `sql`, on PostgreSQL by a
    /// subquery in the returned table. Returns the SQL of the table to read, which makes the database look up tickets by their ids.
    pub(in crate::store) fn push_driving_condition(
        &self,
        sql: &mut Sql,
        condition: &DrivingCondition<'_>,
        shown: ShownTickets,
    ) -> Cow<'static, str> {
        let ids = match condition {
            DrivingCondition::Value(_) => "v.ticket_id",
            DrivingCondition::Label(_) => "l.ticket_id",
            DrivingCondition::Labels(_) | DrivingCondition::Assignees(_) => "t.id",
        };
        if self.backend() == DbBackend::Sqlite {
            sql.push(" AND id IN (SELECT ").push(ids);
            self.push_source(sql, condition, shown);
            sql.push(")");
            // `sqlite_autoindex_tickets_1` is the index of the primary key.
            return "tickets INDEXED BY sqlite_autoindex_tickets_1".into();
        }
        let end = sql.as_str().len();
        self.push_source(sql, condition, shown);
        let source = sql.split_off(end);
        // `LATERAL` makes PostgreSQL look up each ticket by its id. With an array of ids instead, PostgreSQL may scan an assignee's whole
        // list for each id.
        format!(
            "(SELECT t.* FROM (SELECT DISTINCT {ids} AS wanted{source}) w CROSS JOIN LATERAL \
             (SELECT * FROM tickets WHERE store_id = $1 AND id = w.wanted{SUBQUERY_FENCE}) t) tickets"
        )
        .into()
    }

    /// Adds the `FROM` and `WHERE` clauses that select the tickets that fulfil `condition`, on SQLite with the indexes to use.
    fn push_source(&self, sql: &mut Sql, condition: &DrivingCondition<'_>, shown: ShownTickets) {
        match condition {
            DrivingCondition::Value(test) => self.push_values(sql, test),
            DrivingCondition::Labels(labels) => {
                let (sqlite, open) = (self.backend() == DbBackend::Sqlite, shown == ShownTickets::Open);
                sql.push(" FROM conversation_labels l ").push(match (sqlite, open) {
                    (true, true) => "INDEXED BY conversation_labels_by_label CROSS JOIN tickets t INDEXED BY tickets_one_open",
                    (true, false) => "INDEXED BY conversation_labels_by_label CROSS JOIN tickets t INDEXED BY tickets_by_conversation",
                    (false, _) => "CROSS JOIN LATERAL (SELECT t.id FROM tickets t",
                });
                let of_tickets = |sql: &mut Sql| {
                    sql.push("t.store_id = $1 AND t.conversation_id = l.conversation_id").push(if open {
                        " AND t.is_open = TRUE"
                    } else {
                        ""
                    });
                };
                if !sqlite {
                    sql.push(" WHERE ");
                    of_tickets(sql);
                    sql.push(SUBQUERY_FENCE).push(") t");
                }
                sql.push(" WHERE l.store_id = $1 AND l.label_id IN ").texts(labels.iter().copied());
                if sqlite {
                    sql.push(" AND ");
                    of_tickets(sql);
                }
            }
            DrivingCondition::Label(label) => {
                sql.push(" FROM labelled_tickets l WHERE l.store_id = $1 AND l.label_id = ").text(label);
            }
            DrivingCondition::Assignees(users) => {
                sql.push(" FROM tickets t INDEXED BY tickets_by_assignee WHERE t.store_id = $1 AND t.assignee_user_id IN ")
                    .texts(users.iter().copied());
            }
        }
    }
}

/// Returns those conditions of a filter that have an index.
fn indexable_conditions<'a>(
    sqlite: bool,
    filter: &'a TicketFilter,
    shown: ShownTickets,
    tests: &'a [FieldTest],
) -> Vec<DrivingCondition<'a>> {
    let indexed = |test: &&FieldTest| !matches!(test.test, Test::Present | Test::Absent | Test::NoneOf(_) | Test::Contains(_));
    let mut conditions: Vec<DrivingCondition<'_>> = tests.iter().filter(indexed).map(DrivingCondition::Value).collect();
    if let Some(labels) = &filter.labels {
        let ids = labels.label_ids.iter().map(|id| id.as_str());
        match (labels.operator, single_label(filter, shown).filter(|_| sqlite)) {
            (LabelOperator::DoesNotContainAny, _) => {}
            (_, Some(label)) => conditions.push(DrivingCondition::Label(label.as_str())),
            (LabelOperator::ContainsAny, None) => conditions.push(DrivingCondition::Labels(ids.collect())),
            (LabelOperator::ContainsAll, None) => conditions.extend(ids.map(|id| DrivingCondition::Labels(BTreeSet::from([id])))),
        }
    }
    // For one assignee, an index holds the tickets in list order. For several assignees, PostgreSQL chooses an index by its statistics.
    if sqlite && filter.assignee_user_ids.len() > 1 {
        conditions.push(DrivingCondition::Assignees(filter.assignee_user_ids.iter().map(|id| id.as_str()).collect()));
    }
    conditions
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::{
        domain::ticket_filters::LabelFilter,
        store::{fixture::counter, page_cost_tests::shop},
    };

    #[tokio::test]
    async fn a_condition_that_many_tickets_fulfil_is_counted_once_a_minute() {
        let fixture = shop().await;
        let (statements, count) = counter();
        let db = Db::open(&fixture.url, 2, Some(count)).await.unwrap();
        let field = |test: Test| vec![FieldTest { field_id: "score".into(), test }];
        let labels = |ids: &[&str]| TicketFilter {
            labels: Some(LabelFilter { operator: LabelOperator::ContainsAny, label_ids: ids.iter().map(|id| (*id).into()).collect() }),
            ..TicketFilter::default()
        };
        // Returns the number of statements that `Db::find_driving_condition` runs, and whether it returns a condition.
        let asked = async |store: &StoreId, filter: &TicketFilter, tests: &[FieldTest]| {
            let before = statements.load(Ordering::Relaxed);
            let condition = db.find_driving_condition(store, filter, ShownTickets::Closed, tests, db.few_tickets()).await.unwrap();
            (statements.load(Ordering::Relaxed) - before, condition.is_some())
        };
        let (store, none) = (&fixture.store, TicketFilter::default());
        let (half, more, nobody) = (field(Test::Below(50.0)), field(Test::Below(51.0)), field(Test::Above(1000.0)));
        assert_eq!(asked(store, &none, &half).await, (1, false));
        assert_eq!(asked(store, &none, &half).await, (0, false));
        assert_eq!(asked(store, &none, &more).await, (1, false), "another value");
        assert_eq!(asked(&"other".into(), &none, &half).await, (1, true), "another store");
        for _ in 0..2 {
            assert_eq!(asked(store, &none, &nobody).await, (1, true), "few may become many");
        }
        let both = [half.clone(), nobody].concat();
        assert_eq!(asked(store, &none, &both).await, (1, true), "few beside many");
        for _ in 0..2 {
            assert_eq!(asked(store, &labels(&["rare"]), &half).await, (1, true));
        }
        if db.backend() == DbBackend::Sqlite {
            assert_eq!(asked(store, &labels(&["l"]), &half).await, (1, false));
            assert_eq!(asked(store, &labels(&["l"]), &half).await, (0, false));
        }
        db.broad_conditions.clear();
        assert_eq!(asked(store, &none, &half).await, (1, false), "once it is forgotten");
        db.close().await.unwrap();
    }
}
