//! Undelivered messages: messages that are queued (table `outbound`), and messages that failed (table `failed_messages`, the dead letters).
//! The outbox entry of a failed message, which contains what is to be sent, is kept so that the message can be queued again.

use sea_orm::{
    ActiveValue::Set,
    ColumnTrait, Condition, EntityTrait, QueryFilter, QuerySelect,
    sea_query::{Expr, Order, Query, SelectStatement},
};

use crate::{
    domain::{
        ids::{ConversationId, MessageId, StoreId},
        outbound_messages::{Delivery, OutboxEntry},
        time::Timestamp,
        undelivered_messages::UndeliveredMessage,
    },
    store::{
        Db, Result,
        entity::{failed_messages, messages, outbound},
        queues::outbound::ClaimedMessage,
        row_decoding::Cells,
        sql_from_entities::{among, equal_columns},
        stored_values::json,
        transaction::store_transaction::Write,
    },
};

/// Returns a query that joins the rows of a queue table with their messages.
fn of_messages<C: ColumnTrait>(queue: impl EntityTrait, store: C, message: C) -> SelectStatement {
    let same = Condition::all().add(equal_columns(messages::Column::StoreId, store)).add(equal_columns(messages::Column::Id, message));
    let columns = [
        messages::Column::Id,
        messages::Column::ConversationId,
        messages::Column::AccountId,
        messages::Column::SentAt,
        messages::Column::Text,
    ];
    Query::select().columns(columns.map(|column| (messages::Entity, column))).from(queue).inner_join(messages::Entity, same).to_owned()
}

/// Decodes a message in the delivery state `state` from the columns of [`of_messages`].
fn undelivered(cells: &mut Cells<'_>, state: Delivery) -> Result<UndeliveredMessage> {
    Ok(UndeliveredMessage {
        message_id: cells.take()?,
        conversation_id: cells.take()?,
        account_id: cells.take()?,
        sent_at: cells.take()?,
        text: cells.take()?,
        state,
        reason: None,
        attempts: None,
        due_at: None,
        failed_at: None,
        can_be_retried: true,
    })
}

impl Write {
    /// Adds a message to the failed messages (dead letters), after the end of its last attempt.
    pub async fn insert_failed_message(&self, claimed: &ClaimedMessage) -> Result<()> {
        self.insert(failed_messages::ActiveModel {
            store_id: Set(self.store().to_string()),
            message_id: Set(claimed.outbox_entry.message_id.to_string()),
            parcel: Set(Some(json(&claimed.outbox_entry))),
            attempts: Set(Some(claimed.attempts)),
            failed_at: Set(self.now().millis()),
        })
        .await
    }

    /// Deletes a message from the failed messages and returns its outbox entry. `None`: the message is not among the failed messages, or
    /// its outbox entry was not kept.
    pub async fn take_failed_message(&self, id: &MessageId) -> Result<Option<OutboxEntry>> {
        let named = Condition::all()
            .add(failed_messages::Column::StoreId.eq(self.store()))
            .add(failed_messages::Column::MessageId.eq(id))
            .add(failed_messages::Column::Parcel.is_not_null());
        let found = failed_messages::Entity::find().select_only().column(failed_messages::Column::Parcel).filter(named.clone());
        let outbox_entry = self.select_for_update(found, |cells| cells.take()).await?.pop();
        if outbox_entry.is_some() {
            self.execute(&failed_messages::Entity::delete_many().filter(named)).await?;
        }
        Ok(outbox_entry)
    }

    /// Makes the next attempts due now for a queued message and for the messages before it in its conversation, which are sent first.
    /// Attempts in progress continue. Returns `None` if the message is not queued, and false if there was nothing to change.
    pub async fn make_messages_due(&self, id: &MessageId) -> Result<Option<bool>> {
        let found = outbound::Entity::find()
            .select_only()
            .columns([outbound::Column::Position, outbound::Column::ConversationId])
            .filter(outbound::Column::StoreId.eq(self.store()))
            .filter(outbound::Column::MessageId.eq(id));
        let place = |cells: &mut Cells<'_>| Ok((cells.take::<i64>()?, cells.take::<ConversationId>()?));
        let Some((position, conversation)) = self.select(found, place).await?.pop() else { return Ok(None) };
        let hastened = outbound::Entity::update_many()
            .col_expr(outbound::Column::DueAt, Expr::value(self.now()))
            .filter(outbound::Column::StoreId.eq(self.store()))
            .filter(outbound::Column::ConversationId.eq(&conversation))
            .filter(outbound::Column::Position.lte(position))
            .filter(outbound::Column::Claim.is_null())
            .filter(outbound::Column::DueAt.gt(self.now()));
        Ok(Some(self.execute(&hastened).await? > 0))
    }

    /// Removes from the table `failed_messages` at most `limit` messages that failed before a time. Keeps them in the table `messages`.
    pub async fn prune_failed_messages(&self, before: Timestamp, limit: u64) -> Result<()> {
        let old = failed_messages::Entity::find()
            .select_only()
            .column(failed_messages::Column::MessageId)
            .filter(failed_messages::Column::StoreId.eq(self.store()))
            .filter(failed_messages::Column::FailedAt.lt(before))
            .limit(limit);
        let old: Vec<MessageId> = self.select(old, |cells| cells.take()).await?;
        if !old.is_empty() {
            let deleted = failed_messages::Entity::delete_many()
                .filter(failed_messages::Column::StoreId.eq(self.store()))
                // The time is compared again: since the query above, a message may have been retried and have failed again.
                .filter(failed_messages::Column::FailedAt.lt(before))
                .filter(among(failed_messages::Column::MessageId, &old));
            self.execute(&deleted).await?;
        }
        Ok(())
    }

    /// Returns the delivery state of a message. `None`: there is no such message. `Some(None)`: this server did not send the message.
    pub async fn delivery(&self, id: &MessageId) -> Result<Option<Option<Delivery>>> {
        let found = messages::Entity::find_by_id((self.store().to_string(), id.to_string()));
        let found = found.select_only().column(messages::Column::Delivery);
        let state = self.select(found, |cells| cells.take::<Option<String>>()).await?.pop();
        Ok(state.map(|state| state.as_deref().and_then(Delivery::of)))
    }
}

impl Db {
    /// Returns at most `limit` failed messages of a store, the last failure first, after the message `after`. `None`: `after` is not in the
    /// list.
    pub async fn failed_messages(&self, store: &StoreId, after: Option<&MessageId>, limit: u64) -> Result<Option<Vec<UndeliveredMessage>>> {
        use failed_messages::{Column, Entity};
        let mut query = of_messages(Entity, Column::StoreId, Column::MessageId);
        query.column((messages::Entity, messages::Column::Failure));
        query.columns([Column::Attempts, Column::FailedAt].map(|column| (Entity, column)));
        query.expr(Column::Parcel.is_not_null());
        query.and_where(Column::StoreId.eq(store));
        if let Some(after) = after {
            let place =
                Entity::find_by_id((store.to_string(), after.to_string())).select_only().columns([Column::FailedAt, Column::MessageId]);
            let Some((failed_at, id)) = self.select(place, |cells| Ok((cells.take::<i64>()?, cells.take::<MessageId>()?))).await?.pop()
            else {
                return Ok(None);
            };
            let same = Condition::all().add(Column::FailedAt.eq(failed_at)).add(Column::MessageId.lt(&id));
            query.cond_where(Condition::any().add(Column::FailedAt.lt(failed_at)).add(same));
        }
        query.order_by((Entity, Column::FailedAt), Order::Desc).order_by((Entity, Column::MessageId), Order::Desc).limit(limit);
        let decode = |cells: &mut Cells<'_>| {
            let message = undelivered(cells, Delivery::Failed)?;
            let (reason, attempts, failed_at) = (cells.take()?, cells.take()?, Some(cells.take()?));
            Ok(UndeliveredMessage { reason, attempts, failed_at, can_be_retried: cells.take()?, ..message })
        };
        Ok(Some(self.select(query, decode).await?))
    }

    /// Returns at most `limit` queued messages of a store, the last queued first, after the message `after`. `None`: `after` is not in the
    /// list.
    pub async fn pending_messages(
        &self,
        store: &StoreId,
        after: Option<&MessageId>,
        limit: u64,
    ) -> Result<Option<Vec<UndeliveredMessage>>> {
        use outbound::{Column, Entity};
        let mut query = of_messages(Entity, Column::StoreId, Column::MessageId);
        query.columns([Column::Reason, Column::Attempts, Column::DueAt].map(|column| (Entity, column)));
        query.and_where(Column::StoreId.eq(store));
        if let Some(after) = after {
            let place =
                Entity::find().select_only().column(Column::Position).filter(Column::StoreId.eq(store)).filter(Column::MessageId.eq(after));
            let Some(position) = self.select(place, |cells| cells.take::<i64>()).await?.pop() else { return Ok(None) };
            query.and_where(Column::Position.lt(position));
        }
        query.order_by((Entity, Column::Position), Order::Desc).limit(limit);
        let decode = |cells: &mut Cells<'_>| {
            let message = undelivered(cells, Delivery::Pending)?;
            Ok(UndeliveredMessage { reason: cells.take()?, attempts: Some(cells.take()?), due_at: Some(cells.take()?), ..message })
        };
        // Uses `scan`, which is for statements without a bound on the rows that they read: this statement reads and sorts the store's whole
        // queue.
        Ok(Some(self.scan(query, decode).await?))
    }
}
