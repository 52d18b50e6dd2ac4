//! SQL conditions of ticket filters, for the statements that list and count tickets.

use std::{cmp::Reverse, collections::BTreeSet, ops::RangeInclusive};

use sea_orm::DbBackend;

use crate::{
    domain::{
        custom_fields::Comparable,
        ids::{LabelId, StoreId},
        ticket_field_filters::{FieldTest, Test},
        ticket_filters::{LabelFilter, LabelOperator, OpenedAt, ShownTickets, TicketFilter},
        time::Timestamp,
    },
    store::{
        Db,
        parameterised_sql::{NO_INDEX_PREFIX, Param, Sql, text_value},
        tickets::bloom_filters::{BloomBits, BloomPreFilter, RareNumberChoices},
    },
};

impl Db {
    /// Returns the SQL conditions of a filter, except the conditions on labels, on field values and on Bloom filters.
    pub(in crate::store) fn ticket_conditions(&self, store: &StoreId, filter: &TicketFilter, shown: ShownTickets, now: Timestamp) -> Sql {
        let mut sql = Sql::of(store, "");
        push_conditions(&mut sql, filter, shown, now);
        sql
    }

    /// Adds the conditions on the field values of a ticket. `listed` (SQLite only) is the SQL expression for a ticket's id while the
    /// ticket's row has not been fetched yet. Tests that many tickets fail use this expression, so that they run before the row is fetched.
    pub(in crate::store) fn push_field_tests(&self, sql: &mut Sql, tests: &[FieldTestPlan<'_>], listed: Option<&str>) {
        for FieldTestPlan { test, pre_filters: _ } in tests {
            // The number of rows that the statement reads is unbounded: two values may both be frequent although no ticket has both.
            sql.unbounded();
            self.push_field_test(sql, test, listed.filter(|_| !mostly_passes(test)));
        }
    }

    /// Adds the condition on the labels that a ticket's conversation must have, or must not have.
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

    /// Adds the Bloom pre-filters, which skip the tickets whose Bloom filter bits show that they cannot match. PostgreSQL's planner has no
    /// statistics on these bits and must not estimate that few rows pass. For a condition `<expression> <> 0` it estimates that nearly all
    /// rows pass.
    pub(in crate::store) fn push_bloom_pre_filters(&self, sql: &mut Sql, pre_filters: &[BloomPreFilter]) {
        let sqlite = self.backend() == DbBackend::Sqlite;
        let (opened, closed) = if sqlite { (" AND (", ")") } else { (" AND CASE WHEN ", " THEN 1 ELSE 0 END <> 0") };
        for BloomPreFilter { column, choices, rare } in pre_filters {
            sql.push(opened);
            push_choices(sql, column, choices);
            for RareNumberChoices { such, choices } in rare {
                sql.push(" OR (");
                if sqlite {
                    // The subquery does not depend on the ticket, so it runs once.
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

    /// Keeps PostgreSQL from turning the subqueries on a ticket's labels and values into joins. For a page of 20 tickets, a join would
    /// fetch and sort all tickets that have such a label or value.
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
            push_prefix_test(sql, prefix);
        } else {
            self.push_value_test(sql, test, true);
        }
        if !matches!(test, Test::AllOf(_)) {
            self.fence(sql);
            if listed.is_some() {
                // Without the limit SQLite would turn the subquery into a join and read the values after the ticket's row.
                sql.limit(1);
            }
        }
        sql.push(")");
        if let Test::AllOf(values) = test {
            sql.push(" = ").integer(values.len() as i64);
        }
    }

    /// Adds the `FROM` and `WHERE` clauses that select, by an index, the values `v` of a field that pass a test. On SQLite the statement
    /// names the index. Otherwise SQLite, which has no statistics, would scan all values of the store by the primary key, to save the fetch
    /// of a row for each index entry: it assumes that few rows fulfil a condition such as `store_id = $1`.
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

    /// Adds the condition of a test on a row of `ticket_field_values v`. `no_index` keeps the databases from using the indexes on values.
    /// `no_index` is true where the values of a single ticket are tested: a ticket has few values, but the databases would scan all values
    /// of the field that pass the test. SQLite would do so because it has no statistics. PostgreSQL would do so in a table of some ten
    /// thousand values, for a range whose bounds are unknown when it plans.
    fn push_value_test(&self, sql: &mut Sql, test: &Test, no_index: bool) {
        let sqlite = self.backend() == DbBackend::Sqlite;
        let bounded = |sql: &mut Sql| {
            sql.push(" AND ");
            match (no_index, sqlite) {
                (true, true) => sql.push(NO_INDEX_PREFIX),
                (true, false) => sql.without_index(),
                (false, _) => sql,
            };
            sql.push("v.number_value");
        };
        match test {
            Test::Present | Test::Absent => {}
            Test::AnyOf(values) | Test::NoneOf(values) | Test::AllOf(values) => {
                push_one_of(sql, values, no_index && sqlite);
            }
            Test::StartsWith(prefix) => {
                // The prefix is tested as a range, so that an index can be used.
                let beginning = indexed_prefix(prefix);
                sql.push(" AND substr(v.folded, 1, 200) >= ").text(beginning);
                if let Some(behind) = prefix_successor(beginning) {
                    sql.push(" AND substr(v.folded, 1, 200) < ").text(&behind);
                }
                if beginning.len() < prefix.len() {
                    push_prefix_test(sql, prefix);
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

/// Adds the SQL conditions of a filter, except the conditions on labels, on field values and on Bloom filters.
pub(in crate::store) fn push_conditions(sql: &mut Sql, filter: &TicketFilter, shown: ShownTickets, now: Timestamp) {
    sql.push("store_id = $1");
    if !filter.is_plain() {
        sql.unbounded();
    }
    push_list(sql, filter, shown);
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
    push_resolutions(sql, &filter.resolution_statuses);
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
}

/// Adds the condition that the Bloom filter in a column contains all bits of at least one of `choices`.
fn push_choices(sql: &mut Sql, column: &str, choices: &[BloomBits]) {
    for (i, marks) in choices.iter().enumerate() {
        // The masked value is never larger than the mask, so `>=` holds only if all bits are set.
        sql.push(if i == 0 { "(" } else { " OR (" }).push(column).push(" & ").integer(marks.bits());
        sql.push(") >= ").integer(marks.bits());
    }
}

/// A test of a field, with its Bloom pre-filters.
pub(in crate::store) struct FieldTestPlan<'a> {
    pub test: &'a FieldTest,
    /// The Bloom pre-filters of the test: first those on values, their first characters and magnitudes, then that on the contents of texts.
    pub pre_filters: Vec<BloomPreFilter>,
}

/// Returns whether most tickets are expected to pass the test.
fn mostly_passes(FieldTest { test, .. }: &FieldTest) -> bool {
    matches!(test, Test::Present | Test::Absent | Test::NoneOf(_))
}

/// Returns the tests with their Bloom pre-filters, in the order in which a ticket's values are looked up. Tests that most tickets pass come
/// last. Of the other tests, those whose pre-filters have more choices come first: more tickets pass such a pre-filter and then fail the
/// test.
pub(in crate::store) fn order_field_tests(tests: &[FieldTest]) -> Vec<FieldTestPlan<'_>> {
    let planned = |test| FieldTestPlan { test, pre_filters: BloomPreFilter::of(&test.field_id, &test.test).collect() };
    let mut tests: Vec<FieldTestPlan<'_>> = tests.iter().map(planned).collect();
    let choices = |pre_filters: &[BloomPreFilter]| pre_filters.first().map_or(usize::MAX, BloomPreFilter::choice_count);
    tests.sort_by_key(|FieldTestPlan { test, pre_filters }| Reverse(if mostly_passes(test) { 0 } else { choices(pre_filters) }));
    tests
}

/// Returns the Bloom pre-filters for labels and fields. The pre-filter with the fewest choices comes first.
pub(in crate::store) fn bloom_pre_filters(labels: Option<&LabelFilter>, tests: &[FieldTestPlan<'_>]) -> Vec<BloomPreFilter> {
    let of_tests = tests.iter().flat_map(|test| test.pre_filters.iter().cloned());
    let mut pre_filters: Vec<BloomPreFilter> = labels.and_then(BloomPreFilter::of_labels).into_iter().chain(of_tests).collect();
    pre_filters.sort_by_key(BloomPreFilter::choice_count);
    pre_filters
}

/// Returns the label that the filter asks for, if it is the only one and the tickets can be read from the label's own list of open tickets.
/// SQLite keeps such lists, in the order of the ticket list, in the table `labelled_tickets`.
pub(in crate::store) fn single_label(filter: &TicketFilter, shown: ShownTickets) -> Option<&LabelId> {
    let LabelFilter { operator, label_ids } = filter.labels.as_ref()?;
    let (first, others) = label_ids.split_first()?;
    let leads = *operator != LabelOperator::DoesNotContainAny && others.iter().all(|other| other == first);
    let listed = shown == ShownTickets::Open && filter.conversation_id.is_none() && filter.assignee_user_ids.len() != 1;
    (leads && listed).then_some(first)
}

/// Adds the conditions that select one list of the store: `shown` selects open, closed or all tickets; `filter.is_spam` selects spam or the
/// rest.
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

/// Returns the column that holds these values. All values of one field have the same type.
fn column(values: &[Comparable]) -> &'static str {
    match values.first() {
        Some(Comparable::Number(_)) => "number_value",
        _ => "text_value",
    }
}

/// Adds the condition that a value is one of `values`. With `no_index`, SQLite does not use the index on values; `no_index` is true where
/// the values of a single ticket are tested.
fn push_one_of(sql: &mut Sql, values: &[Comparable], no_index: bool) {
    let texts = values.iter().filter_map(|value| match value {
        Comparable::Text(text) => Some(text.as_str()),
        Comparable::Number(_) => None,
    });
    let params = values.iter().map(|value| match value {
        Comparable::Number(number) => Param::Number(*number),
        Comparable::Text(text) => text_value(indexed_prefix(text)),
    });
    let tested = match values.first() {
        Some(Comparable::Number(_)) => "v.number_value",
        _ => "substr(v.text_value, 1, 200)",
    };
    sql.push(" AND ");
    if no_index && COMPARED_ONE_BY_ONE.contains(&values.len()) {
        sql.one_by_one(tested, params.collect());
    } else {
        sql.push(if no_index { NO_INDEX_PREFIX } else { "" }).push(tested).push(" IN ").list(params.collect());
    }
    // The comparison above is exact for texts that are shorter than the indexed prefix. If one of the texts is not shorter, the texts are
    // also compared as a whole.
    if texts.clone().any(|text| text.chars().nth(INDEXED_CHARS - 1).is_some()) {
        sql.push(" AND v.text_value IN ").texts(texts);
    }
}

/// For these numbers of values, the SQL on SQLite compares a ticket's value with one value after the other. For one or two values SQLite
/// itself does so. For an `IN` list SQLite builds a temporary table for each page, which costs more than the comparisons of a page.
const COMPARED_ONE_BY_ONE: RangeInclusive<usize> = 3..=20;

/// The length in characters of the prefixes of texts that the indexes hold. A condition must contain the same expression as the index,
/// `substr(<column>, 1, 200)`, or the databases do not use the index.
const INDEXED_CHARS: usize = 200;

/// Returns the prefix of a text that an index holds.
fn indexed_prefix(text: &str) -> &str {
    text.char_indices().nth(INDEXED_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// Returns the first text that sorts after all texts with this prefix. `None`: the prefix is empty or consists only of [`char::MAX`].
fn prefix_successor(beginning: &str) -> Option<String> {
    let kept = beginning.trim_end_matches(char::MAX);
    let last = kept.chars().next_back()?;
    let next = (last..=char::MAX).nth(1)?;
    Some(format!("{}{next}", &kept[..kept.len() - last.len_utf8()]))
}

/// Adds the condition that the folded text begins with the whole prefix, which may be longer than the prefix in the index.
fn push_prefix_test(sql: &mut Sql, prefix: &str) {
    sql.push(" AND substr(v.folded, 1, length(").text(prefix).push(")) = ").text(prefix);
}
