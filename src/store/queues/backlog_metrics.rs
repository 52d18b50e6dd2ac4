//! Reads numbers for metrics: how many messages and webhook events of all stores (tenants) wait to be sent and since when, how many
//! webhooks are disabled or failing, and the size of the database.

use crate::{
    domain::{
        delivery_outcome::{Backlog, Backlogs, COUNT_LIMIT},
        time::Timestamp,
    },
    store::{Db, Result, sql::Sql},
};

const WEBHOOKS: &str = "SELECT COALESCE(SUM(CASE WHEN enabled = FALSE AND disabled_reason IS NOT NULL THEN 1 ELSE 0 END), 0), \
     COALESCE(SUM(CASE WHEN enabled = TRUE AND failing_since IS NOT NULL THEN 1 ELSE 0 END), 0) FROM webhooks";

impl Db {
    /// Reads the numbers. The metric that counts SQL statements leaves out the statements of this function: otherwise each scrape of the
    /// metrics would change that count.
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
        let webhooks = self.first(Sql::fixed(WEBHOOKS), |cells| Ok((cells.take::<i64>()?, cells.take::<i64>()?))).await?;
        let (disabled, failing) = webhooks.unwrap_or_default();
        let bytes = match self.file() {
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
