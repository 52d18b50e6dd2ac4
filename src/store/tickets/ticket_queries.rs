//! Ticket queries: a ticket by its id, the paginated list with its filters, and the time window of a ticket's messages.
//!
//! A Bloom pre-filter tests bits that are stored with each ticket. If the bits prove that a ticket lacks the wanted label or field value,
//! the statement skips the ticket without a look-up (`bloom_filters`). The parameter `driving` is the driving condition: the condition of
//! the filter by whose index the list is read (`driving_index`).

use std::borrow::Cow;

use sea_orm::{
    DbBackend,
    sea_query::{CaseStatement, Expr, ExprTrait, Order, Query},
};

use crate::{
    domain::{
        ids::{LabelId, StoreId, TicketId},
        paging::{Page, PageRequest, Position},
        ticket_field_filters::FieldTest,
        ticket_filters::{ShownTickets, TicketFilter},
        tickets::{Ticket, TicketWindow},
        time::Timestamp,
    },
    store::{
        Db, Result,
        entity::tickets,
        parameterised_sql::Sql,
        row_decoding::{Row, stored_record},
        sql_from_entities::{FixedQuery, equals_parameter},
        statement::{
            as_of::{MovingList, MovingRow},
            pages::{PageSource, PagedRow, count_sql, fenced_count_sql},
        },
        tickets::{
            bloom_filters::BloomPreFilter,
            counters::push_ticket_total,
            driving_index::DrivingCondition,
            filter::{bloom_pre_filters, order_field_tests, push_conditions, push_list, single_label},
        },
    },
};

stored_record! {
    Ticket in tickets:
    id, is_open, is_spam, is_follow_up, channel, contact_id, account_id, conversation_id, opened_at, closed_at, reopened_at, snoozed_until,
    assignee_user_id, handled_by, sort_at, created_at, updated_at;
    number: ticket_number, fields: ticket_fields, fields_updated_at: ticket_fields_updated_at
}

impl PagedRow for Ticket {
    const SORT: tickets::Column = tickets::Column::SortAt;

    fn position(&self) -> Position {
        Position::new(self.sort_at, self.id.as_str())
    }
}

impl MovingRow for Ticket {}

/// The query for the window of a ticket's messages, as [`Db::ticket_window`] returns it. Its parameters are the ids of the store and of the
/// ticket.
static TICKET_WINDOW: FixedQuery = FixedQuery::new(|| {
    use tickets::{
        Column::{ClosedAt, ConversationId, Id, IsOpen, OpenedAt, StoreId},
        Entity,
    };
    let former = |column| Expr::col(("former", column));
    let own = |column| Expr::col((Entity, column));
    let former_close = Query::select()
        .expr(former(ClosedAt))
        .from_as(Entity, "former")
        .and_where(equals_parameter(("former", StoreId), 1))
        .and_where(former(ConversationId).eq(own(ConversationId)))
        .and_where(Expr::tuple([OpenedAt, Id].map(former)).lt(Expr::tuple([OpenedAt, Id].map(own))))
        .order_by(("former", OpenedAt), Order::Desc)
        .order_by(("former", Id), Order::Desc)
        .limit(1)
        .take();
    let close = CaseStatement::new().case(own(IsOpen).eq(false), own(ClosedAt));
    Query::select()
        .exprs([own(ConversationId), former_close.into(), close.into()])
        .from(Entity)
        .and_where(equals_parameter((Entity, StoreId), 1))
        .and_where(equals_parameter((Entity, Id), 2))
        .take()
});

impl Db {
    pub async fn ticket(&self, store: &StoreId, id: &TicketId) -> Result<Option<Ticket>> {
        self.row_by_id(store, id.as_str()).await
    }

    /// Returns a page of tickets, in the order of their last messages, newest first. `tests` replaces `filter.fields`: it has the same
    /// conditions after validation against the definitions of the fields.
    pub async fn tickets(
        &self,
        store: &StoreId,
        filter: &TicketFilter,
        shown: ShownTickets,
        tests: &[FieldTest],
        now: Timestamp,
        page: &PageRequest,
    ) -> Result<Page<Ticket>> {
        let mut conditions = self.ticket_conditions(store, filter, shown, now);
        let driving = self.find_driving_condition(store, filter, shown, tests, self.few_tickets()).await?;
        let plain = filter.is_plain() && tests.is_empty();
        let total = if page.count && !plain {
            let further =
                if driving.is_none() { self.find_driving_condition_of_total(store, filter, shown, tests, now).await? } else { None };
            let driving = driving.as_ref().or(further.as_ref());
            Some(self.filtered_total_sql(filter, shown, tests, driving, conditions.clone()))
        } else {
            None
        };
        if let Some(total) = &total {
            // The SQL of the first page contains the SQL of the total. So the bound values of the page begin with those of the total.
            conditions.values.clone_from(&total.values);
        }
        let source = self.ticket_source(filter, shown, tests, driving.as_ref(), &mut conditions);
        let moved = |sql: &mut Sql| {
            push_conditions(sql, filter, shown, now);
            self.push_field_tests(sql, &order_field_tests(tests), Some("listed.listed_id"));
            if let Some(labels) = &filter.labels {
                self.push_labels(sql, labels);
            }
        };
        let list = MovingList { source, conditions, moved: &moved };
        match total {
            Some(total) => self.page_with_counted_total(list, page, total).await,
            None => {
                let push_total = |sql: &mut Sql| push_ticket_total(sql, shown, filter.is_spam, now);
                self.page_with_kept_total(list, page, store, push_total).await
            }
        }
    }

    /// Returns the SQL that counts the tickets that fulfil the conditions of a filter.
    pub(in crate::store) fn filtered_total_sql(
        &self,
        filter: &TicketFilter,
        shown: ShownTickets,
        tests: &[FieldTest],
        driving: Option<&DrivingCondition<'_>>,
        mut conditions: Sql,
    ) -> Sql {
        let source = self.ticket_source(filter, shown, tests, driving, &mut conditions);
        // With fences (`OFFSET 0`), PostgreSQL looks up the labels and values of each ticket that passes the Bloom pre-filters. Without
        // fences, it would read every field value that passes a test, since its planner does not know how few tickets pass the pre-filters.
        // Fences are used if at least two pre-filters compare with a single bit pattern (choice) each: few tickets pass these. Otherwise
        // reading every value is faster, unless `driving` already selects few tickets.
        let compares_once = |pre_filter: &BloomPreFilter| pre_filter.choice_count() == 1;
        let labels = filter.labels.as_ref().and_then(BloomPreFilter::of_labels).iter().any(compares_once);
        let comparing_once = tests
            .iter()
            .filter(|FieldTest { field_id, test }| {
                BloomPreFilter::of(field_id, test).next().is_some_and(|pre_filter| compares_once(&pre_filter))
            })
            .count();
        let count = if driving.is_some() || comparing_once + usize::from(labels) > 1 { fenced_count_sql } else { count_sql };
        count(&source.table, conditions)
    }

    /// Returns the source that the list is read from: a table, or a subquery joined with it. Adds the field tests to `conditions`, and
    /// those restrictions by labels, by Bloom filters and by `driving` that the source does not apply itself.
    pub(in crate::store) fn ticket_source(
        &self,
        filter: &TicketFilter,
        shown: ShownTickets,
        tests: &[FieldTest],
        driving: Option<&DrivingCondition<'_>>,
        conditions: &mut Sql,
    ) -> PageSource<'static> {
        let (sqlite, index) = (self.backend() == DbBackend::Sqlite, ticket_index(filter, shown));
        let scans_list = sqlite && driving.is_none();
        let leading = single_label(filter, shown).filter(|_| scans_list);
        let labels = filter.labels.as_ref().filter(|_| leading.is_none());
        let tests = order_field_tests(tests);
        let bloom_pre_filters = bloom_pre_filters(labels, &tests);
        let is_pre_filtered = scans_list && BLOOM_INDEXES.contains(&index) && !bloom_pre_filters.is_empty();
        let listed = (leading.is_some() || is_pre_filtered).then_some("listed.listed_id");
        self.push_field_tests(conditions, &tests, listed);
        if let Some(label) = leading {
            return self.label_source(label, filter.is_spam, &bloom_pre_filters, conditions);
        }
        if let Some(labels) = labels {
            self.push_labels(conditions, labels);
        }
        if is_pre_filtered {
            return self.pre_filtered_source(filter, shown, index, &bloom_pre_filters, conditions);
        }
        self.push_bloom_pre_filters(conditions, &bloom_pre_filters);
        match driving {
            Some(driving) => self.push_driving_condition(conditions, driving, shown).into(),
            None if sqlite => Cow::<str>::Owned(format!("tickets INDEXED BY {index}")).into(),
            None => Ticket::table().into(),
        }
    }

    /// Returns a subquery that applies the Bloom pre-filters within the covering index, joined with `tickets` for the tickets that pass.
    /// For tickets that do not pass, only the index is read. A plain scan of `tickets` would take longer: for each row, SQLite would
    /// record its position in the table before it tests the columns of the index.
    fn pre_filtered_source(
        &self,
        filter: &TicketFilter,
        shown: ShownTickets,
        index: &str,
        pre_filters: &[BloomPreFilter],
        conditions: &mut Sql,
    ) -> PageSource<'static> {
        let end = conditions.as_str().len();
        push_list(conditions, filter, shown);
        self.push_bloom_pre_filters(conditions, pre_filters);
        let passes = conditions.split_off(end);
        let table = format!(
            "(SELECT rowid AS place, sort_at AS listed_at, id AS listed_id FROM tickets INDEXED BY {index} \
             WHERE store_id = $1{passes}) listed CROSS JOIN tickets ON tickets.rowid = listed.place"
        );
        PageSource { table: table.into(), order: LISTED_SORT }
    }

    /// Returns a subquery on `labelled_tickets` for the open tickets of a label that pass the Bloom pre-filters, joined with `tickets`. The
    /// tickets of the subquery have the label, so no further look-up tests the label.
    fn label_source(&self, label: &LabelId, is_spam: bool, pre_filters: &[BloomPreFilter], conditions: &mut Sql) -> PageSource<'static> {
        let end = conditions.as_str().len();
        conditions.push(" AND label_id = ").text(label.as_str()).push(" AND is_spam = ").flag(is_spam);
        self.push_bloom_pre_filters(conditions, pre_filters);
        let passes = conditions.split_off(end);
        let table = format!(
            "(SELECT sort_at AS listed_at, ticket_id AS listed_id FROM labelled_tickets WHERE store_id = $1{passes}) listed \
             CROSS JOIN tickets INDEXED BY sqlite_autoindex_tickets_1 ON tickets.id = listed.listed_id"
        );
        PageSource { table: table.into(), order: LISTED_SORT }
    }

    /// Returns the window of a ticket's messages: its conversation, the time at which the conversation's previous ticket closed, and the
    /// time at which this ticket closed.
    pub async fn ticket_window(&self, store: &StoreId, id: &TicketId) -> Result<Option<TicketWindow>> {
        self.first(TICKET_WINDOW.sql(store, &[id.as_str()]), |cells| {
            Ok(TicketWindow { conversation_id: cells.take()?, after: cells.take()?, until: cells.take()? })
        })
        .await
    }
}

/// Returns the index that SQLite has to use (INDEXED BY). SQLite has no statistics here and would choose the index with the most columns
/// that are tested for equality. It would prefer the index by state to the indexes by conversation and assignee, and a result of few rows
/// would cost a scan of all open tickets. PostgreSQL has statistics and chooses its index itself.
fn ticket_index(filter: &TicketFilter, shown: ShownTickets) -> &'static str {
    if filter.conversation_id.is_some() {
        "tickets_by_conversation"
    } else if filter.assignee_user_ids.len() == 1 {
        "tickets_by_assignee"
    } else if shown == ShownTickets::All {
        "tickets_by_message"
    } else {
        "tickets_by_state"
    }
}

/// The sort columns of the subquery `listed`, which is joined with `tickets`.
const LISTED_SORT: Option<(&str, &str)> = Some(("listed_at", "listed_id"));

/// The covering indexes of tickets that contain, on SQLite, the three columns of Bloom filters (`label_marks`, `field_marks`,
/// `text_marks`).
const BLOOM_INDEXES: [&str; 2] = ["tickets_by_message", "tickets_by_state"];
