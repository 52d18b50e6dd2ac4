//! Database queries for webhooks (subscriptions to events) and for the secrets that sign their deliveries. The queries for the deliveries
//! themselves are in `queues::deliveries`.

use std::sync::LazyLock;

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::Expr,
};

use crate::{
    domain::{
        ids::{StoreId, WebhookId},
        time::Timestamp,
        webhooks::{SigningSecret, Webhook, WebhookDelivery},
    },
    store::{
        Db, Result,
        entity::{attempts, deliveries, webhook_kinds, webhook_secrets, webhooks},
        settings::signing_secrets::SecretTable,
        sql_from_entities::{is, model},
        transaction::store_transaction::Write,
    },
};

pub(in crate::store) static SECRETS: LazyLock<SecretTable> =
    LazyLock::new(|| SecretTable::of_endpoints(webhook_secrets::Entity, webhook_secrets::Column::WebhookId));

impl From<webhooks::Model> for Webhook {
    fn from(row: webhooks::Model) -> Self {
        Self {
            id: row.id.into(),
            url: row.url,
            kinds: Vec::new(),
            account_id: row.account_id.map(Into::into),
            enabled: row.enabled,
            disabled_reason: row.disabled_reason,
            failing_since: row.failing_since.map(Timestamp::from_millis),
            created_at: Timestamp::from_millis(row.created_at),
            updated_at: Timestamp::from_millis(row.updated_at),
        }
    }
}

impl Write {
    pub async fn insert_webhook(&self, webhook: &Webhook, secret: &SigningSecret) -> Result<()> {
        self.insert(webhooks::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(webhook.id.to_string()),
            url: Set(webhook.url.clone()),
            account_id: Set(webhook.account_id.as_ref().map(ToString::to_string)),
            enabled: Set(true),
            disabled_reason: NotSet,
            failing_since: NotSet,
            created_at: Set(webhook.created_at.millis()),
            updated_at: Set(webhook.updated_at.millis()),
        })
        .await?;
        self.save_kinds(webhook).await?;
        self.insert_secret(*SECRETS, webhook.id.as_str(), secret).await
    }

    /// Returns a subscription, and locks its row until the end of the transaction.
    pub async fn webhook(&self, id: &WebhookId) -> Result<Option<Webhook>> {
        let found = webhooks::Entity::find().filter(self.of_webhook(id));
        let Some(row) = self.select_for_update(found, model::<webhooks::Entity>).await?.pop() else { return Ok(None) };
        let kinds = webhook_kinds::Entity::find()
            .select_only()
            .column(webhook_kinds::Column::Kind)
            .filter(webhook_kinds::Column::StoreId.eq(self.store()))
            .filter(webhook_kinds::Column::WebhookId.eq(id))
            .order_by_asc(webhook_kinds::Column::Kind);
        let kinds = self.select(kinds, |cells| cells.take()).await?;
        Ok(Some(Webhook { kinds, ..row.into() }))
    }

    /// Saves the properties of a subscription that can be changed. Cancels the queued deliveries of a subscription that is not enabled.
    pub async fn save_webhook(&self, webhook: &Webhook) -> Result<()> {
        self.update(webhooks::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(webhook.id.to_string()),
            url: Set(webhook.url.clone()),
            account_id: Set(webhook.account_id.as_ref().map(ToString::to_string)),
            enabled: Set(webhook.enabled),
            disabled_reason: Set(webhook.disabled_reason.clone()),
            failing_since: Set(webhook.failing_since.map(Timestamp::millis)),
            created_at: NotSet,
            updated_at: Set(webhook.updated_at.millis()),
        })
        .await?;
        if !webhook.enabled {
            let waiting = deliveries::Entity::update_many()
                .col_expr(deliveries::Column::DueAt, Expr::value(None::<i64>))
                .col_expr(deliveries::Column::Claim, Expr::value(None::<String>))
                .filter(deliveries::Column::StoreId.eq(self.store()))
                .filter(deliveries::Column::WebhookId.eq(&webhook.id))
                .filter(deliveries::Column::DueAt.is_not_null());
            self.execute(&waiting).await?;
        }
        self.save_kinds(webhook).await
    }

    async fn save_kinds(&self, webhook: &Webhook) -> Result<()> {
        let former =
            Condition::all().add(webhook_kinds::Column::StoreId.eq(self.store())).add(webhook_kinds::Column::WebhookId.eq(&webhook.id));
        self.execute(&webhook_kinds::Entity::delete_many().filter(former)).await?;
        for kind in &webhook.kinds {
            self.insert(webhook_kinds::ActiveModel {
                store_id: Set(self.store().to_string()),
                webhook_id: Set(webhook.id.to_string()),
                kind: Set(kind.clone()),
            })
            .await?;
        }
        Ok(())
    }

    /// Adds a new signing secret of a subscription. Deliveries are also signed with the subscription's earlier secrets until `ends_at` at
    /// the latest.
    pub async fn supersede_secrets(&self, id: &WebhookId, secret: &SigningSecret, ends_at: Timestamp) -> Result<()> {
        self.supersede(*SECRETS, id.as_str(), secret, ends_at).await
    }

    /// Deletes a subscription with its deliveries, logged delivery attempts, secrets and event kinds. The caller has locked the row of the
    /// subscription.
    pub async fn delete_webhook(&self, id: &WebhookId) -> Result<()> {
        /// Builds the statement that deletes the rows of the subscription in a table.
        macro_rules! rows {
            ($table:ident) => {
                $table::Entity::delete_many().filter($table::Column::StoreId.eq(self.store())).filter($table::Column::WebhookId.eq(id))
            };
        }
        // Attempts are removed after deliveries. A worker that is just ending an attempt locks the delivery and logs the attempt in one
        // transaction; removing the delivery waits for that transaction, so the logged attempt is removed too.
        self.execute(&rows!(deliveries)).await?;
        self.execute(&rows!(attempts)).await?;
        self.execute(&rows!(webhook_secrets)).await?;
        self.execute(&rows!(webhook_kinds)).await?;
        self.execute(&webhooks::Entity::delete_many().filter(self.of_webhook(id))).await.map(|_| ())
    }

    /// Returns the URL of an enabled subscription, and since when all attempts to deliver to it have failed. Does not lock the row.
    pub async fn health(&self, webhook: &WebhookId) -> Result<Option<(String, Option<Timestamp>)>> {
        let enabled = webhooks::Entity::find().filter(self.of_webhook(webhook)).filter(webhooks::Column::Enabled.eq(true));
        let found = self.select(enabled, model::<webhooks::Entity>).await?.pop();
        Ok(found.map(|row| (row.url, row.failing_since.map(Timestamp::from_millis))))
    }

    /// Stores the time since which the endpoint of a delivery has failed, or `None` if the endpoint accepts deliveries. Writes only if the
    /// endpoint starts or stops failing, and only if the subscription still has the URL of the delivery.
    pub async fn note_health(&self, webhook_delivery: &WebhookDelivery, failing_since: Option<Timestamp>) -> Result<()> {
        let column = webhooks::Column::FailingSince;
        let changes = if failing_since.is_some() { column.is_null() } else { column.is_not_null() };
        let noted = webhooks::Entity::update_many()
            .col_expr(column, Expr::value(failing_since.map(Timestamp::millis)))
            .filter(self.of_webhook(&webhook_delivery.webhook_id))
            .filter(webhooks::Column::Url.eq(&webhook_delivery.url))
            .filter(changes);
        self.execute(&noted).await.map(|_| ())
    }

    fn of_webhook(&self, id: &WebhookId) -> Condition {
        Condition::all().add(webhooks::Column::StoreId.eq(self.store())).add(webhooks::Column::Id.eq(id))
    }
}

impl Db {
    /// Returns the subscriptions of a store, the oldest first.
    pub async fn webhooks(&self, store: &StoreId) -> Result<Vec<Webhook>> {
        let rows = self.find_all(
            webhooks::Entity::find()
                .filter(webhooks::Column::StoreId.eq(store))
                .order_by_asc(webhooks::Column::CreatedAt)
                .order_by_asc(webhooks::Column::Id),
        );
        let kinds = self.find_all(
            webhook_kinds::Entity::find().filter(webhook_kinds::Column::StoreId.eq(store)).order_by_asc(webhook_kinds::Column::Kind),
        );
        let mut webhooks: Vec<Webhook> = rows.await?.into_iter().map(Into::into).collect();
        let kinds = kinds.await?;
        for webhook in &mut webhooks {
            let own = kinds.iter().filter(|row| row.webhook_id == webhook.id.as_str());
            webhook.kinds = own.map(|row| row.kind.clone()).collect();
        }
        Ok(webhooks)
    }

    /// Returns whether any store has an enabled subscription. If none has, the delivery worker need not queue events.
    pub async fn is_subscribed_to(&self) -> Result<bool> {
        let enabled = |of: Option<&StoreId>| {
            let query = webhooks::Entity::find().select_only().column(webhooks::Column::Id).filter(is(webhooks::Column::Enabled, true));
            query.apply_if(of, |query, store| query.filter(webhooks::Column::StoreId.eq(store))).limit(1)
        };
        Ok(!self.across_stores(enabled, |cells| cells.take::<String>()).await?.is_empty())
    }
}
