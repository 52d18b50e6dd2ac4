//! Filters of tickets, as conditions of the statements that list and count them.

use std::{cmp::Reverse, collections::BTreeSet, ops::RangeInclusive};

use sea_orm::DbBackend;

use crate::{
    domain::{
        field_predicates::{FieldTest, Test},
        fields::Comparable,
        filters::{LabelFilter, LabelOperator, OpenedAt, ShownTickets, TicketFilter},
        ids::{LabelId, StoreId},
        time::Timestamp,
    },
    store::{
        Db,
        sql::{ASIDE, Param, Sql, text_value},
        tickets::bloom_signature::{Marks, Rare, Sieve},
    },
};

impl Db {
    /// The conditions of a filter, but for those on labels and fields and what the marks say.
    pub(in crate::store) fn ticket_conditions(&self, store: &StoreId, filter: &TicketFilter, shown: ShownTickets, now: Timestamp) -> Sql {
        let mut sql = Sql::of(store, "store_id = $1");
        if !filter.is_plain() {
            sql.unbounded();
        }
        push_list(&mut sql, filter, shown);
        if shown == ShownTickets::Open {
            sql.push(" AND (snoozed_until IS NULL OR snoozed_until <= ").integer(now.millis()).push(")");
        }
        if let Some(conversation) = &filter.conversation_id {
            sql.push(" AND conversation_id = ").text(conversation.as_str());
        }
        if !filter.account_ids.is_empty() {
            sql.push(" AND account_id IN ").texts(filter.account_ids.iter().map(|id| id.as_str()));
        }
        if let [assignee] = filter.assignee_user_ids.as_slice() {
            sql.push(" AND assignee_user_id = ").text(assignee.as_str());
        } else if !filter.assignee_user_ids.is_empty() {
            sql.push(" AND assignee_user_id IN ").texts(filter.assignee_user_ids.iter().map(|id| id.as_str()));
        }
        if filter.unassigned {
            sql.push(" AND assignee_user_id IS NULL");
        }
        if !filter.handled_by_user_ids.is_empty() {
            sql.push(" AND handled_by IN ").texts(filter.handled_by_user_ids.iter().map(|id| id.as_str()));
        }
        push_resolutions(&mut sql, &filter.resolution_statuses);
        if let Some(is_follow_up) = filter.is_follow_up {
            sql.push(" AND is_follow_up = ").flag(is_follow_up);
        }
        if let Some(minutes) = filter.waiting_minutes {
            let since = now.millis().saturating_sub(minutes.saturating_mul(60_000));
            sql.push(" AND is_open = TRUE AND waiting_since <= ").integer(since);
        }
        match filter.opened_at {
            Some(OpenedAt::Between(from, to)) => {
                sql.push(" AND opened_at >= ").integer(from.millis()).push(" AND opened_at <= ").integer(to.millis());
            }
            Some(OpenedAt::After(at)) => {
                sql.push(" AND opened_at > ").integer(at.millis());
            }
            Some(OpenedAt::Before(at)) => {
                sql.push(" AND opened_at < ").integer(at.millis());
            }
            None => {}
        }
        sql
    }

    /// What the values of a ticket must be. `listed` is the id of one whose row is not looked up yet: what may well fail is asked of
    /// that, and before. On SQLite.
    pub(in crate::store) fn push_field_tests(&self, sql: &mut Sql, tests: &[Sieved<'_>], listed: Option<&str>) {
        for Sieved { test, sieves: _ } in tests {
            // Two values that many have each may meet in no ticket of the whole list.
            sql.unbounded();
            self.push_field_test(sql, test, listed.filter(|_| !mostly_passes(test)));
        }
    }

    /// The labels that a ticket's conversation must have, or must not.
    pub(in crate::store) fn push_labels(&self, sql: &mut Sql, labels: &LabelFilter) {
        let ids: BTreeSet<&str> = labels.label_ids.iter().map(|id| id.as_str()).collect();
        let count = ids.len() as i64;
        sql.push(match labels.operator {
            LabelOperator::ContainsAny => " AND EXISTS (SELECT 1",
            LabelOperator::DoesNotContainAny => " AND NOT EXISTS (SELECT 1",
            LabelOperator::ContainsAll => " AND (SELECT COUNT(*)",
        });
        sql.push(" FROM conversation_labels l WHERE l.store_id = $1 AND l.conversation_id = tickets.conversation_id AND l.label_id IN ");
        sql.texts(ids);
        self.fence(sql);
        sql.push(")");
        if labels.operator == LabelOperator::ContainsAll {
            sql.push(" = ").integer(count);
        }
    }

    /// Passes over the tickets whose marks say that they cannot pass. PostgreSQL, which knows nothing of marks, is not to take
    /// what they let through for rare: of a number that differs from another it expects nearly all.
    pub(in crate::store) fn push_sieves(&self, sql: &mut Sql, sieves: &[Sieve]) {
        let sqlite = self.backend() == DbBackend::Sqlite;
        let (opened, closed) = if sqlite { (" AND (", ")") } else { (" AND CASE WHEN ", " THEN 1 ELSE 0 END <> 0") };
        for Sieve { column, choices, rare } in sieves {
            sql.push(opened);
            push_choices(sql, column, choices);
            for Rare { such, choices } in rare {
                sql.push(" OR (");
                if sqlite {
                    // It names no ticket, so it is asked once.
                    sql.push("EXISTS (SELECT 1");
                    self.push_values(sql, such);
                    sql.push(") AND (");
                } else {
                    sql.push("(");
                }
                push_choices(sql, column, choices);
                sql.push("))");
            }
            sql.push(closed);
        }
    }

    /// Keeps what a ticket's labels and values must be from being joined. PostgreSQL would fetch all tickets that have such a
    /// value, in a shop of 100,000 the fifth of them, to sort them for a page of 20.
    fn fence(&self, sql: &mut Sql) {
        if self.backend() == DbBackend::Postgres {
            sql.fence();
        }
    }

    fn push_field_test(&self, sql: &mut Sql, FieldTest { field_id, test }: &FieldTest, listed: Option<&str>) {
        match test {
            Test::Absent | Test::NoneOf(_) => sql.push(" AND NOT EXISTS (SELECT 1"),
            Test::AllOf(values) => sql.push(" AND (SELECT COUNT(DISTINCT v.").push(column(values)).push(")"),
            _ => sql.push(" AND EXISTS (SELECT 1"),
        };
        sql.push(VALUES).push(OF_STORE).push(" AND v.ticket_id = ").push(listed.unwrap_or("tickets.id"));
        sql.push(" AND v.field_id = ").text(field_id.as_str());
        if let Test::StartsWith(prefix) = test {
            push_begins(sql, prefix);
        } else {
            self.push_value_test(sql, test, true);
        }
        if !matches!(test, Test::AllOf(_)) {
            self.fence(sql);
            if listed.is_some() {
                // Without it SQLite would join the values, behind the row.
                sql.limit(1);
            }
        }
        sql.push(")");
        if let Test::AllOf(values) = test {
            sql.push(" = ").integer(values.len() as i64);
        }
    }

    /// The values `v` of a field that fulfil a test which an index finds. On SQLite that is named: without statistics it takes every
    /// index for so selective that a look at the row behind it costs more than a walk through all rows of the store.
    pub(in crate::store) fn push_values(&self, sql: &mut Sql, FieldTest { field_id, test }: &FieldTest) {
        let index = match test {
            Test::StartsWith(_) => " INDEXED BY ticket_field_values_by_fold",
            Test::AnyOf(values) | Test::AllOf(values) if column(values) == "text_value" => " INDEXED BY ticket_field_values_by_text",
            _ => " INDEXED BY ticket_field_values_by_number",
        };
        sql.push(VALUES).push(if self.backend() == DbBackend::Sqlite { index } else { "" }).push(OF_STORE);
        sql.push(" AND v.field_id = ").text(field_id.as_str());
        self.push_value_test(sql, test, false);
    }

    /// What a row of `ticket_field_values v` must fulfil. `aside` keeps it from the indexes of the values: one ticket's are few.
    /// Without statistics SQLite would rather look through all values of the field that pass; so would PostgreSQL, as long as they
    /// are some ten thousand, through those within bounds that it does not know when it plans.
    fn push_value_test(&self, sql: &mut Sql, test: &Test, aside: bool) {
        let sqlite = self.backend() == DbBackend::Sqlite;
        let bounded = |sql: &mut Sql| {
            sql.push(" AND ");
            match (aside, sqlite) {
                (true, true) => sql.push(ASIDE),
                (true, false) => sql.aside(),
                (false, _) => sql,
            };
            sql.push("v.number_value");
        };
        match test {
            Test::Present | Test::Absent => {}
            Test::AnyOf(values) | Test::NoneOf(values) | Test::AllOf(values) => {
                push_one_of(sql, values, aside && sqlite);
            }
            Test::StartsWith(prefix) => {
                // As a range, so that an index serves.
                let beginning = beginning(prefix);
                sql.push(" AND substr(v.folded, 1, 200) >= ").text(beginning);
                if let Some(behind) = behind(beginning) {
                    sql.push(" AND substr(v.folded, 1, 200) < ").text(&behind);
                }
                if beginning.len() < prefix.len() {
                    push_begins(sql, prefix);
                }
            }
            Test::Contains(needle) => {
                sql.push(" AND ");
                self.push_contains(sql, "v.folded", needle);
            }
            Test::Above(bound) => {
                bounded(sql);
                sql.push(" > ").number(*bound);
            }
            Test::Below(bound) => {
                bounded(sql);
                sql.push(" < ").number(*bound);
            }
            Test::Between(min, max) => {
                bounded(sql);
                sql.push(" BETWEEN ").number(*min).push(" AND ").number(*max);
            }
        }
    }
}

/// That the marks hold all of one choice.
fn push_choices(sql: &mut Sql, column: &str, choices: &[Marks]) {
    for (i, marks) in choices.iter().enumerate() {
        // Never more than these.
        sql.push(if i == 0 { "(" } else { " OR (" }).push(column).push(" & ").integer(marks.bits());
        sql.push(") >= ").integer(marks.bits());
    }
}

/// A test of a field with what the marks say about it.
pub(in crate::store) struct Sieved<'a> {
    pub test: &'a FieldTest,
    /// The one of what it asks for first.
    pub sieves: Vec<Sieve>,
}

/// Whether a ticket of whom nothing is known fulfils it more often than not.
fn mostly_passes(FieldTest { test, .. }: &FieldTest) -> bool {
    matches!(test, Test::Present | Test::Absent | Test::NoneOf(_))
}

/// The tests in the order in which a ticket's values are looked up. Where the marks compare with more choices, more get by that do
/// not fulfil the test, a bound's within a magnitude above all, so it comes first. (Of a rare value most that get by do not either;
/// but there few do at all, and the walk costs more than the looks.)
pub(in crate::store) fn sieved(tests: &[FieldTest]) -> Vec<Sieved<'_>> {
    let sieved = |test| Sieved { test, sieves: Sieve::of(&test.field_id, &test.test).collect() };
    let mut tests: Vec<Sieved<'_>> = tests.iter().map(sieved).collect();
    let choices = |sieves: &[Sieve]| sieves.first().map_or(usize::MAX, Sieve::breadth);
    tests.sort_by_key(|Sieved { test, sieves }| Reverse(if mostly_passes(test) { 0 } else { choices(sieves) }));
    tests
}

/// What the marks say about labels and fields: what is compared with the fewest comes first.
pub(in crate::store) fn sieves(labels: Option<&LabelFilter>, tests: &[Sieved<'_>]) -> Vec<Sieve> {
    let of_tests = tests.iter().flat_map(|test| test.sieves.iter().cloned());
    let mut sieves: Vec<Sieve> = labels.and_then(Sieve::of_labels).into_iter().chain(of_tests).collect();
    sieves.sort_by_key(Sieve::breadth);
    sieves
}

/// The one label that is asked for, where SQLite keeps its open tickets in the order of their list and that is the list to walk.
pub(in crate::store) fn leading_label(filter: &TicketFilter, shown: ShownTickets) -> Option<&LabelId> {
    let LabelFilter { operator, label_ids } = filter.labels.as_ref()?;
    let (first, others) = label_ids.split_first()?;
    let leads = *operator != LabelOperator::DoesNotContainAny && others.iter().all(|other| other == first);
    let listed = shown == ShownTickets::Open && filter.conversation_id.is_none() && filter.assignee_user_ids.len() != 1;
    (leads && listed).then_some(first)
}

/// Which list of the store is meant.
pub(in crate::store) fn push_list(sql: &mut Sql, filter: &TicketFilter, shown: ShownTickets) {
    sql.push(match shown {
        ShownTickets::Open => " AND is_open = TRUE",
        ShownTickets::Closed => " AND is_open = FALSE",
        ShownTickets::All => "",
    });
    sql.push(" AND is_spam = ").flag(filter.is_spam);
}

const VALUES: &str = " FROM ticket_field_values v";
const OF_STORE: &str = " WHERE v.store_id = $1";

fn push_resolutions(sql: &mut Sql, statuses: &[String]) {
    let set: Vec<&str> = statuses.iter().map(String::as_str).filter(|status| *status != "none").collect();
    let unset = set.len() < statuses.len();
    match (unset, set.is_empty()) {
        (false, true) => {}
        (true, true) => {
            sql.push(" AND resolution_status IS NULL");
        }
        (false, false) => {
            sql.push(" AND resolution_status IN ").texts(set);
        }
        (true, false) => {
            sql.push(" AND (resolution_status IS NULL OR resolution_status IN ").texts(set).push(")");
        }
    }
}

/// Which column holds these values; those of one field are all of one type.
fn column(values: &[Comparable]) -> &'static str {
    match values.first() {
        Some(Comparable::Number(_)) => "number_value",
        _ => "text_value",
    }
}

/// `aside`: of one ticket's values, on SQLite.
fn push_one_of(sql: &mut Sql, values: &[Comparable], aside: bool) {
    let texts = values.iter().filter_map(|value| match value {
        Comparable::Text(text) => Some(text.as_str()),
        Comparable::Number(_) => None,
    });
    let params = values.iter().map(|value| match value {
        Comparable::Number(number) => Param::Number(*number),
        Comparable::Text(text) => text_value(beginning(text)),
    });
    let tested = match values.first() {
        Some(Comparable::Number(_)) => "v.number_value",
        _ => "substr(v.text_value, 1, 200)",
    };
    sql.push(" AND ");
    if aside && ONE_BY_ONE.contains(&values.len()) {
        sql.one_by_one(tested, params.collect());
    } else {
        sql.push(if aside { ASIDE } else { "" }).push(tested).push(" IN ").list(params.collect());
    }
    // A shorter text is its own beginning and no longer one's.
    if texts.clone().any(|text| text.chars().nth(INDEXED_CHARS - 1).is_some()) {
        sql.push(" AND v.text_value IN ").texts(texts);
    }
}

/// How many values SQLite compares a ticket's with one by one. (One or two it does by itself.) For what is `IN` a list it makes a
/// table, for each page anew, which costs more than a page's comparisons do. (A total of twenty values that lie far apart, which most
/// tickets have none of, takes 4 in 100 longer so.)
const ONE_BY_ONE: RangeInclusive<usize> = 3..=20;

/// The length of the beginnings that the indexes of texts hold. Spelled in the conditions as it is in the indexes, or the
/// databases would not see that they are the same.
const INDEXED_CHARS: usize = 200;

/// What an index holds of a text.
fn beginning(text: &str) -> &str {
    text.char_indices().nth(INDEXED_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// The first text that sorts behind all that begin so; none behind the last character of all.
fn behind(beginning: &str) -> Option<String> {
    let kept = beginning.trim_end_matches(char::MAX);
    let last = kept.chars().next_back()?;
    let next = (last..=char::MAX).nth(1)?;
    Some(format!("{}{next}", &kept[..kept.len() - last.len_utf8()]))
}

/// The whole prefix, wherever the index ends.
fn push_begins(sql: &mut Sql, prefix: &str) {
    sql.push(" AND substr(v.folded, 1, length(").text(prefix).push(")) = ").text(prefix);
}
