//! Reads numbers for metrics: how many messages and webhook events of all stores (tenants) wait to be sent and since when, how many
//! webhooks are disabled or failing, and the size of the database.

use sea_orm::{
    ColumnTrait, Condition,
    sea_query::{Expr, Func, Query, SelectStatement},
};

use crate::{
    domain::{
        delivery_outcome::{Backlog, Backlogs, COUNT_LIMIT},
        time::Timestamp,
    },
    store::{Db, Result, entity::webhooks, parameterised_sql::Sql, sql_from_entities::is},
};

/// Returns the query for two numbers: the webhooks that are disabled because their endpoints failed, and the enabled webhooks whose
/// deliveries fail. A webhook that its owner disabled is in neither number, since its `failing_since` is cleared.
fn webhook_counts() -> SelectStatement {
    use webhooks::Column;
    let failing = |enabled| Condition::all().add(is(Column::Enabled, enabled)).add(Column::FailingSince.is_not_null());
    let counts = [false, true].map(|enabled| Func::count(Expr::case(failing(enabled), Expr::Constant(1.into()))));
    Query::select().exprs(counts).from(webhooks::Entity).to_owned()
}

impl Db {
    /// Reads the values of [`Backlogs`]. The metric that counts SQL statements leaves out the statements of this function: otherwise each
    /// scrape of the metrics would change that count.
    pub async fn backlogs(&self) -> Result<Backlogs> {
        self.uncounted().read_backlogs().await
    }

    async fn read_backlogs(&self) -> Result<Backlogs> {
        // `position` grows in the order in which messages were queued, so the lowest position is that of the oldest message.
        let messages = format!(
            "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM outbound LIMIT {COUNT_LIMIT}) AS waiting), \
             (SELECT m.created_at FROM outbound o JOIN messages m ON m.store_id = o.store_id AND m.id = o.message_id \
              ORDER BY o.position LIMIT 1)"
        );
        // The table `deliveries` also keeps the events that were delivered; their `due_at` is NULL.
        let events = format!(
            "SELECT COUNT(*), MIN(e.occurred_at) FROM (SELECT store_id, event_id FROM deliveries WHERE due_at IS NOT NULL LIMIT {COUNT_LIMIT}) d \
             LEFT JOIN events e ON e.store_id = d.store_id AND e.id = d.event_id"
        );
        let (messages, events) = (self.backlog(&messages).await?, self.backlog(&events).await?);
        let webhooks = self.select(webhook_counts(), |cells| Ok((cells.take::<i64>()?, cells.take::<i64>()?))).await?.pop();
        let (disabled, failing) = webhooks.unwrap_or_default();
        let bytes = match &self.file {
            Some(file) => file.bytes(),
            None => count(self.first(Sql::fixed("SELECT pg_database_size(current_database())"), |cells| cells.take::<i64>()).await?),
        };
        Ok(Backlogs { messages, events, webhooks_disabled: count(Some(disabled)), webhooks_failing: count(Some(failing)), bytes })
    }

    async fn backlog(&self, sql: &str) -> Result<Backlog> {
        let read = self.first(Sql::fixed(sql), |cells| Ok((cells.take::<i64>()?, cells.take::<Option<i64>>()?))).await?;
        let (waiting, oldest) = read.unwrap_or_default();
        Ok(Backlog { waiting: count(Some(waiting)), oldest: oldest.map(Timestamp::from_millis) })
    }
}

fn count(value: Option<i64>) -> u64 {
    value.and_then(|value| u64::try_from(value).ok()).unwrap_or_default()
}
