//! The driving index of a filtered list of tickets: where the walk starts, if not at the newest ticket.
//!
//! For a label or a field value that one ticket has, the databases would walk the whole list. SQLite, which has no statistics here, would
//! do so for assignees with one ticket, too. So a bounded statement first finds out which of the filter's conditions few tickets fulfil.
//! A condition that many tickets fulfil is remembered for a minute and not counted again; if the number drops within that minute, the
//! list is merely walked.
//!
//! On SQLite the open tickets of one label already form a list of their own; rare conditions are compared with its length.
//!
//! A total reads its list to the end. It therefore starts from a condition that fewer tickets fulfil than a share of the list. Where this
//! share is more than what counts as few for a page, a second statement counts up to it.

use std::{borrow::Cow, collections::BTreeSet};

use sea_orm::DbBackend;

use crate::{
    domain::{
        field_predicates::{FieldTest, Test},
        filters::{LabelOperator, ShownTickets, TicketFilter},
        ids::StoreId,
        time::Timestamp,
    },
    store::{
        Db, Result,
        sql::{FENCE, Sql},
        tickets::filter::leading_label,
    },
};

/// A condition that few tickets fulfil, from which a list can start.
pub(in crate::store) enum Start<'a> {
    Value(&'a FieldTest),
    /// Any of these labels.
    Labels(BTreeSet<&'a str>),
    /// This label, whose open tickets already form a list. It is compared with the other conditions; where it has the fewest tickets, its
    /// list is walked. On SQLite.
    Label(&'a str),
    /// One of these assignees. On SQLite, where the statement names the index.
    Assignees(BTreeSet<&'a str>),
}

/// If at most this many tickets fulfil a condition, the statement reads them by that condition's index instead of reading the list in
/// order.
const FEW: i64 = 200;
/// [`FEW`] on PostgreSQL. Reading the list in order costs more per ticket there, since the index has no Bloom filters, and each row has to
/// be fetched.
const FEW_ON_POSTGRES: i64 = 1000;

/// How many times as much it costs to look a ticket up by its id as to skip it while the list is read in order. To skip it, SQLite reads
/// only the ticket's Bloom filters in the index; PostgreSQL has to fetch its row.
const DEARER: i64 = 40;
const DEARER_ON_POSTGRES: i64 = 10;

impl Db {
    /// The condition of the filter that the fewest tickets fulfil, if they are at most `few` and do not form a list already.
    pub(in crate::store) async fn start<'a>(
        &self,
        store: &StoreId,
        filter: &'a TicketFilter,
        shown: ShownTickets,
        tests: &'a [FieldTest],
        few: i64,
    ) -> Result<Option<Start<'a>>> {
        let sqlite = self.backend() == DbBackend::Sqlite;
        if filter.conversation_id.is_some() {
            return Ok(None);
        }
        let named = starts(sqlite, filter, shown, tests).into_iter().map(|start| {
            let mut source = Sql::of(store, &few.to_string());
            self.push_source(&mut source, &start, shown);
            (self.broad().key(&source), start)
        });
        let mut starts: Vec<(u64, Start<'_>)> = named.filter(|(key, _)| !self.broad().contains(*key)).collect();
        if starts.is_empty() {
            return Ok(None);
        }
        let mut sql = Sql::of(store, "SELECT ");
        if few > self.few() {
            sql.unbounded();
        }
        for (i, (_, start)) in starts.iter().enumerate() {
            if i > 0 {
                sql.push(", ");
            }
            if let Start::Labels(labels) = start {
                // If the labels have many conversations, the tickets of those need not be looked up.
                sql.push("CASE WHEN (SELECT COUNT(*) FROM (SELECT 1 FROM conversation_labels l WHERE l.store_id = $1 AND l.label_id IN ");
                sql.texts(labels.iter().copied()).limit(few + 1).push(") AS few) > ").integer(few);
                sql.push(" THEN ").integer(few + 1).push(" ELSE ");
            }
            sql.push("(SELECT COUNT(*) FROM (SELECT 1");
            self.push_source(&mut sql, start, shown);
            sql.limit(few + 1).push(") AS few)");
            if let Start::Labels(_) = start {
                sql.push(" END");
            }
        }
        let number = starts.len();
        let counts = self.first(sql, move |cells| (0..number).map(|_| cells.take::<i64>()).collect::<Result<Vec<_>>>()).await?;
        let mut fewest = None;
        for (at, count) in counts.unwrap_or_default().into_iter().enumerate() {
            if count > few {
                self.broad().insert(starts[at].0);
            } else if fewest.is_none_or(|(fewest, _)| count < fewest) {
                fewest = Some((count, at));
            }
        }
        let fewest = fewest.map(|(_, at)| starts.swap_remove(at).1);
        Ok(fewest.filter(|start| !matches!(start, Start::Label(_))))
    }

    /// How many tickets count as few for a page.
    pub(in crate::store) fn few(&self) -> i64 {
        if self.backend() == DbBackend::Sqlite { FEW } else { FEW_ON_POSTGRES }
    }

    /// How many tickets count as few for a total of a list of this length. The rows of a list follow each other, while each of these
    /// tickets is looked up by itself.
    pub(in crate::store) fn few_of(&self, listed: u64) -> i64 {
        // Each limit is a statement text of its own, so there are few limits: every one is four times the last.
        let dearer = if self.backend() == DbBackend::Sqlite { DEARER } else { DEARER_ON_POSTGRES };
        let mut few = self.few();
        while few.saturating_mul(4).saturating_mul(dearer) <= i64::try_from(listed).unwrap_or(i64::MAX) {
            few *= 4;
        }
        few
    }

    /// [`Db::start`] for a total whose first page starts at the newest ticket. The total starts from a condition that fewer tickets
    /// fulfil than a share of the list. The tickets of an assignee already form a list of their own, mostly a short one.
    pub(in crate::store) async fn start_of_total<'a>(
        &self,
        store: &StoreId,
        filter: &'a TicketFilter,
        shown: ShownTickets,
        tests: &'a [FieldTest],
        now: Timestamp,
    ) -> Result<Option<Start<'a>>> {
        let sqlite = self.backend() == DbBackend::Sqlite;
        let short = filter.conversation_id.is_some() || !filter.assignee_user_ids.is_empty();
        if short || starts(sqlite, filter, shown, tests).is_empty() {
            return Ok(None);
        }
        match self.few_of(self.ticket_total(store, shown, filter.is_spam, now).await?) {
            few if few > self.few() => self.start(store, filter, shown, tests, few).await,
            _ => Ok(None),
        }
    }

    /// Narrows the conditions to the tickets that fulfil `start`. Returns the table for these conditions, written so that tickets are
    /// found by their ids.
    pub(in crate::store) fn push_start(&self, sql: &mut Sql, start: &Start<'_>, shown: ShownTickets) -> Cow<'static, str> {
        let ids = match start {
            Start::Value(_) => "v.ticket_id",
            Start::Label(_) => "l.ticket_id",
            Start::Labels(_) | Start::Assignees(_) => "t.id",
        };
        if self.backend() == DbBackend::Sqlite {
            sql.push(" AND id IN (SELECT ").push(ids);
            self.push_source(sql, start, shown);
            sql.push(")");
            // The index behind the primary key.
            return "tickets INDEXED BY sqlite_autoindex_tickets_1".into();
        }
        let end = sql.as_str().len();
        self.push_source(sql, start, shown);
        let source = sql.split_off(end);
        // Each ticket is looked up by itself. Given an array of ids, PostgreSQL may walk an assignee's whole list for each id.
        format!(
            "(SELECT t.* FROM (SELECT DISTINCT {ids} AS wanted{source}) w CROSS JOIN LATERAL \
             (SELECT * FROM tickets WHERE store_id = $1 AND id = w.wanted{FENCE}) t) tickets"
        )
        .into()
    }

    /// Adds the `FROM` clause for the ids of the tickets that fulfil `start`, on SQLite with the indexes to use.
    fn push_source(&self, sql: &mut Sql, start: &Start<'_>, shown: ShownTickets) {
        match start {
            Start::Value(test) => self.push_values(sql, test),
            Start::Labels(labels) => {
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
                    sql.push(FENCE).push(") t");
                }
                sql.push(" WHERE l.store_id = $1 AND l.label_id IN ").texts(labels.iter().copied());
                if sqlite {
                    sql.push(" AND ");
                    of_tickets(sql);
                }
            }
            Start::Label(label) => {
                sql.push(" FROM labelled_tickets l WHERE l.store_id = $1 AND l.label_id = ").text(label);
            }
            Start::Assignees(users) => {
                sql.push(" FROM tickets t INDEXED BY tickets_by_assignee WHERE t.store_id = $1 AND t.assignee_user_id IN ")
                    .texts(users.iter().copied());
            }
        }
    }
}

/// The conditions of a filter that an index can find.
fn starts<'a>(sqlite: bool, filter: &'a TicketFilter, shown: ShownTickets, tests: &'a [FieldTest]) -> Vec<Start<'a>> {
    let indexed = |test: &&FieldTest| !matches!(test.test, Test::Present | Test::Absent | Test::NoneOf(_) | Test::Contains(_));
    let mut starts: Vec<Start<'_>> = tests.iter().filter(indexed).map(Start::Value).collect();
    if let Some(labels) = &filter.labels {
        let ids = labels.label_ids.iter().map(|id| id.as_str());
        match (labels.operator, leading_label(filter, shown).filter(|_| sqlite)) {
            (LabelOperator::DoesNotContainAny, _) => {}
            (_, Some(label)) => starts.push(Start::Label(label.as_str())),
            (LabelOperator::ContainsAny, None) => starts.push(Start::Labels(ids.collect())),
            (LabelOperator::ContainsAll, None) => starts.extend(ids.map(|id| Start::Labels(BTreeSet::from([id])))),
        }
    }
    // An index holds the tickets of one assignee in list order. For several assignees PostgreSQL has statistics.
    if sqlite && filter.assignee_user_ids.len() > 1 {
        starts.push(Start::Assignees(filter.assignee_user_ids.iter().map(|id| id.as_str()).collect()));
    }
    starts
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::{
        domain::filters::LabelFilter,
        store::{fixture::counter, visit_tests::shop},
    };

    #[tokio::test]
    async fn what_many_tickets_have_is_counted_once_a_minute() {
        let fixture = shop().await;
        let (statements, count) = counter();
        let db = Db::open(&fixture.url, 2, Some(count)).await.unwrap();
        let field = |test: Test| vec![FieldTest { field_id: "score".into(), test }];
        let labels = |ids: &[&str]| TicketFilter {
            labels: Some(LabelFilter { operator: LabelOperator::ContainsAny, label_ids: ids.iter().map(|id| (*id).into()).collect() }),
            ..TicketFilter::default()
        };
        // The number of statements that it takes to find the start, and whether the start is anything but the newest ticket.
        let asked = async |store: &StoreId, filter: &TicketFilter, tests: &[FieldTest]| {
            let before = statements.load(Ordering::Relaxed);
            let start = db.start(store, filter, ShownTickets::Closed, tests, db.few()).await.unwrap();
            (statements.load(Ordering::Relaxed) - before, start.is_some())
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
        db.broad().clear();
        assert_eq!(asked(store, &none, &half).await, (1, false), "once it is forgotten");
        db.close().await.unwrap();
    }
}
