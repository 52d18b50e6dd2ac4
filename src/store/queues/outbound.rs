//! The outbox: the queue of messages that are to be sent to channels (such as e-mail). An entry is written in the transaction that stores
//! the message, claimed by a worker for each attempt, and deleted when the message is sent or has failed.
//!
//! A claim ends at `due_at`. If its worker dies or hangs, another worker can claim the message after that time. Then the first worker can
//! no longer end its attempt: every statement that ends an attempt names the claim of the attempt, and finds no row once the claim has
//! changed. Of the queued messages of a conversation, only the oldest can be claimed, so that no message overtakes another.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, DbBackend, EntityTrait, QueryFilter,
    sea_query::Expr,
};

use crate::{
    domain::{
        channel_bridges::BridgeEndpoint,
        ids::{AccountId, ConversationId, MessageId, StoreId, TicketId},
        messages::Message,
        outbound_messages::{Delivery, MAX_REFERENCES, OutboxEntry},
        time::Timestamp,
    },
    store::{
        Db, Error, Result,
        entity::{messages, outbound},
        queues::concurrency::{Allotment, AttemptLimits},
        row_decoding::{Cells, Row},
        settings::bridges::endpoints,
        sql::{Param, Sql},
        transaction::store_transaction::Write,
    },
};

/// A message that a worker has claimed, in order to send it to its channel.
#[derive(Clone, Debug)]
pub struct ClaimedMessage {
    pub position: i64,
    pub claim: String,
    /// The number of attempts, including the attempt of this claim.
    pub attempts: i64,
    pub outbox_entry: OutboxEntry,
    /// The bridge of the message's channel account, if the account has one. A bridge is an HTTP endpoint that delivers the messages of the
    /// account.
    pub bridge: Option<BridgeEndpoint>,
}

/// A channel account: its store and its id.
pub type StoreAccount = (StoreId, AccountId);

/// The most due messages that one statement of [`Db::claim_outbox_entries`] reads.
const CANDIDATES: i64 = 1024;

/// An e-mail of a conversation (mail thread).
#[derive(Clone, Debug)]
pub struct ThreadEmail {
    pub inbound: bool,
    pub sender: Option<String>,
    pub payload: Option<String>,
    pub external_id: Option<String>,
}

/// Returns the JSON text in which an outbox entry is stored.
pub(super) fn outbox_entry_json(outbox_entry: &OutboxEntry) -> Result<String> {
    serde_json::to_string(outbox_entry).map_err(|error| Error::Damaged(error.to_string()))
}

impl Write {
    /// Returns the last `MAX_REFERENCES` e-mails of a conversation (mail thread), the newest first.
    pub async fn thread_mails(&self, conversation: &ConversationId) -> Result<Vec<ThreadEmail>> {
        let mut sql = self.sql("SELECT inbound, sender, payload, external_id FROM messages WHERE store_id = $1 AND conversation_id = ");
        sql.text(conversation.as_str()).push(" ORDER BY sent_at DESC, id DESC").limit(MAX_REFERENCES as i64);
        self.all(sql, |cells| {
            Ok(ThreadEmail { inbound: cells.take()?, sender: cells.take()?, payload: cells.take()?, external_id: cells.take()? })
        })
        .await
    }

    /// Updates an open ticket after the store sent a message in the ticket's conversation: the sort position, and since when the customer
    /// has waited.
    pub fn bump_answered_ticket(&self, ticket: &TicketId, at: Timestamp) -> Result<()> {
        let mut update = self.sql("UPDATE tickets SET sort_at = CASE WHEN sort_at < ");
        update.integer(at.millis()).push(" THEN ").integer(at.millis());
        update.push(" ELSE sort_at END, waiting_since = CASE WHEN waiting_since <= ");
        // Only inbound messages after the sent message still wait for an answer.
        update.integer(at.millis()).push(
            " THEN (SELECT MIN(m.sent_at) FROM messages m WHERE m.store_id = $1 \
             AND m.conversation_id = tickets.conversation_id AND m.inbound = TRUE AND m.sent_at > ",
        );
        update.integer(at.millis()).push(") ELSE waiting_since END");
        update.push(" WHERE store_id = $1 AND id = ").text(ticket.as_str());
        self.run_deferred(update)
    }

    /// Puts a message into the outbox.
    pub fn put_outbox_entry(&self, outbox_entry: &OutboxEntry) -> Result<()> {
        self.insert_deferred(outbound::ActiveModel {
            position: NotSet,
            store_id: Set(self.store().to_string()),
            message_id: Set(outbox_entry.message_id.to_string()),
            conversation_id: Set(outbox_entry.conversation_id.to_string()),
            account_id: Set(outbox_entry.account_id.to_string()),
            parcel: Set(outbox_entry_json(outbox_entry)?),
            attempts: Set(0),
            due_at: Set(self.now().millis()),
            claim: NotSet,
            reason: NotSet,
        })
    }

    fn of_claim(&self, claimed: &ClaimedMessage) -> Condition {
        Condition::all()
            .add(outbound::Column::StoreId.eq(self.store()))
            .add(outbound::Column::Position.eq(claimed.position))
            .add(outbound::Column::Claim.eq(&claimed.claim))
    }

    /// Ends an attempt and deletes the message from the outbox. Returns `false` if the claim was lost; then another worker decides the
    /// outcome of the message.
    pub async fn delete_outbox_entry(&self, claimed: &ClaimedMessage) -> Result<bool> {
        Ok(self.execute(&outbound::Entity::delete_many().filter(self.of_claim(claimed))).await? == 1)
    }

    /// Ends a failed attempt: stores its reason, and schedules the next attempt at `due_at`.
    pub async fn reschedule_outbox_entry(&self, claimed: &ClaimedMessage, due_at: Timestamp, reason: &str) -> Result<()> {
        let postponed = outbound::Entity::update_many()
            .col_expr(outbound::Column::Claim, Expr::value(None::<String>))
            .col_expr(outbound::Column::DueAt, Expr::value(due_at))
            .col_expr(outbound::Column::Reason, Expr::value(reason))
            .filter(self.of_claim(claimed));
        self.execute(&postponed).await?;
        Ok(())
    }

    /// Stores the delivery state of a message and the reason of a failure. Returns the message.
    pub async fn save_delivery(&self, id: &MessageId, delivery: Delivery, failure: Option<&str>) -> Result<Option<Message>> {
        let mut sql = self.sql("UPDATE messages SET delivery = ");
        sql.text(delivery.as_str()).push(", failure = ").optional_text(failure);
        sql.push(" WHERE store_id = $1 AND id = ").text(id.as_str()).push(" RETURNING ").push(Message::COLUMNS);
        self.first(sql, Message::decode).await
    }

    /// Updates a message that is queued again: its delivery state becomes pending, and its kind becomes that of the outbox entry.
    pub async fn save_requeued(&self, outbox_entry: &OutboxEntry) -> Result<()> {
        let requeued = messages::Entity::update_many()
            .col_expr(messages::Column::Delivery, Expr::value(Delivery::Pending.as_str()))
            .col_expr(messages::Column::Failure, Expr::value(None::<String>))
            .col_expr(messages::Column::Kind, Expr::value(outbox_entry.kind.clone()))
            .filter(messages::Column::StoreId.eq(self.store()))
            .filter(messages::Column::Id.eq(&outbox_entry.message_id));
        self.execute(&requeued).await?;
        Ok(())
    }

    /// Stores the id that the channel gave a message. Returns false if another message of the account has this id.
    pub async fn save_external_id(&self, message: &Message, external_id: &str) -> Result<bool> {
        let mut sql = self.sql("UPDATE messages SET external_id = ");
        sql.text(external_id).push(" WHERE store_id = $1 AND id = ").text(message.id.as_str());
        sql.push(" AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.store_id = $1 AND m.external_id IS NOT NULL AND m.account_id = ");
        sql.text(message.account_id.as_str()).push(" AND m.external_id = ").text(external_id).push(")");
        Ok(self.run(sql).await? == 1)
    }

    /// Stores the id that the channel gave a thread: in the conversation of this message, unless another conversation of the account has
    /// the id.
    pub async fn save_thread_id(&self, message: &Message, reference_id: &str) -> Result<()> {
        let mut sql = self.sql("UPDATE conversations SET reference_id = ");
        sql.text(reference_id).push(" WHERE store_id = $1 AND id = ").text(message.conversation_id.as_str());
        sql.push(" AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.store_id = $1 AND c.account_id = ");
        sql.text(message.account_id.as_str()).push(" AND c.reference_id = ").text(reference_id).push(")");
        self.run(sql).await?;
        Ok(())
    }
}

impl Db {
    /// Returns the earliest time at which an attempt to send a message is due, in any store.
    pub async fn next_message_at(&self) -> Result<Option<Timestamp>> {
        let next = |of: Option<&StoreId>| {
            let mut sql = Sql::fixed("SELECT due_at FROM outbound WHERE due_at IS NOT NULL");
            sql.and_of_store("store_id", of).push(" ORDER BY due_at").limit(1);
            sql
        };
        Ok(self.across_stores(next, |cells| cells.time()).await?.into_iter().min())
    }

    /// Claims due messages for a worker, as many as the limits of concurrent attempts permit. The claims end at the time `lease`.
    pub async fn claim_outbox_entries(
        &self,
        now: Timestamp,
        lease: Timestamp,
        claim: &str,
        room: AttemptLimits<'_, StoreAccount>,
    ) -> Result<Vec<ClaimedMessage>> {
        let of_room = |of: Option<&StoreId>| {
            let mut sql = due(now, of);
            // Messages of a store or account at its limit of concurrent attempts must not fill `CANDIDATES` and hide other messages.
            for store in room.full_stores() {
                sql.push(" AND o.store_id <> ").text(store.as_str());
            }
            for (store, account) in room.full() {
                sql.push(" AND NOT (o.store_id = ").text(store.as_str()).push(" AND o.account_id = ").text(account.as_str()).push(")");
            }
            sql.push(DUE_ORDER).limit(CANDIDATES);
            sql
        };
        let due = self.across_stores(of_room, |cells| decode_due(cells).map(|(_, place)| place)).await?;
        let mut claimed =
            self.claim_by_store(room.allotted(due), |store, allotted| self.claim_messages_of(store, allotted, now, lease, claim)).await?;
        claimed.sort_by_key(|one| one.position);
        Ok(claimed)
    }

    /// Claims due messages of a store, as many for each account as are allotted.
    async fn claim_messages_of(
        &self,
        store: StoreId,
        mut allotted: Allotment<StoreAccount>,
        now: Timestamp,
        lease: Timestamp,
        claim: &str,
    ) -> Result<Vec<ClaimedMessage>> {
        let mut sql = due(now, Some(&store));
        // Reads only the messages of accounts for which an attempt may start: other messages could fill `CANDIDATES` and hide them.
        sql.push(" AND o.account_id IN ").texts(allotted.targets().map(|(_, account)| account.as_str())).push(DUE_ORDER).limit(CANDIDATES);
        if self.backend() == DbBackend::Postgres {
            sql.push(" FOR UPDATE SKIP LOCKED");
        }
        let tx = self.begin().await?;
        let due = tx.all(&sql, decode_due).await?;
        let chosen: Vec<i64> = due.into_iter().filter(|(_, place)| allotted.take(place)).map(|(position, _)| position).collect();
        if chosen.is_empty() {
            tx.commit().await?;
            return Ok(Vec::new());
        }
        let mut sql =
            Sql::of(&store, "UPDATE outbound SET claim = $2, attempts = attempts + 1, due_at = $3 WHERE store_id = $1 AND position IN ");
        sql = sql.with(Param::Text(claim.to_owned())).with(Param::Integer(lease.millis()));
        sql.integers(&chosen);
        sql.push(" RETURNING position, claim, attempts, parcel, account_id");
        let bridges = endpoints(&tx, self.secret_keys(), &store, &chosen, now).await?;
        let decode = |cells: &mut Cells<'_>| {
            let (position, claim, attempts, outbox_entry) = (cells.take()?, cells.take()?, cells.take()?, cells.json()?);
            let bridge = bridges.get(&cells.id()?).cloned();
            Ok(ClaimedMessage { position, claim, attempts, outbox_entry, bridge })
        };
        let claimed = tx.all(&sql, decode).await?;
        tx.commit().await?;
        Ok(claimed)
    }
}

/// Begins the SQL for the due messages of one store or of all stores. Further conditions can be appended, then [`DUE_ORDER`].
fn due(now: Timestamp, of: Option<&StoreId>) -> Sql {
    let mut sql = Sql::fixed(
        "SELECT o.position, o.store_id, o.account_id FROM outbound o WHERE NOT EXISTS (SELECT 1 FROM outbound p \
         WHERE p.store_id = o.store_id AND p.conversation_id = o.conversation_id AND p.position < o.position) AND o.due_at <= ",
    );
    sql.integer(now.millis()).and_of_store("o.store_id", of);
    sql
}

/// The order of due messages: the longest due first.
const DUE_ORDER: &str = " ORDER BY o.due_at, o.position";

fn decode_due(cells: &mut Cells<'_>) -> Result<(i64, StoreAccount)> {
    Ok((cells.take()?, (cells.id()?, cells.id()?)))
}
