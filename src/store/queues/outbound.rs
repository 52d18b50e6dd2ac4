//! The outbox: the queue of messages that are to be sent to channels (such as e-mail). An entry is written in the transaction that stores
//! the message, claimed by a worker for each attempt, and deleted when the message is sent or has failed.
//!
//! A claim ends at `due_at`. If its worker dies or hangs, another worker can claim the message after that time. Then the first worker can
//! no longer end its attempt: every statement that ends an attempt names the claim of the attempt, and finds no row once the claim has
//! changed. Of the queued messages of a conversation, only the oldest can be claimed, so that no message overtakes another.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{Expr, LockBehavior, LockType, Order, Query, SelectStatement},
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
        Db, Result,
        entity::{conversations, messages, outbound, tickets},
        queues::concurrency::{Allotment, AttemptLimits},
        row_decoding::{Cells, Row},
        settings::bridges::endpoints,
        sql_from_entities::{among, equal_columns, is},
        stored_values::json,
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
const CANDIDATES: u64 = 1024;

/// An e-mail of a conversation (mail thread).
#[derive(Clone, Debug)]
pub struct ThreadEmail {
    pub inbound: bool,
    pub sender: Option<String>,
    pub payload: Option<String>,
    pub external_id: Option<String>,
}

impl Write {
    /// Returns the last `MAX_REFERENCES` e-mails of a conversation (mail thread), the newest first.
    pub async fn thread_mails(&self, conversation: &ConversationId) -> Result<Vec<ThreadEmail>> {
        use messages::Column;
        let mails = messages::Entity::find()
            .select_only()
            .columns([Column::Inbound, Column::Sender, Column::Payload, Column::ExternalId])
            .filter(Column::StoreId.eq(self.store()))
            .filter(Column::ConversationId.eq(conversation))
            .order_by_desc(Column::SentAt)
            .order_by_desc(Column::Id)
            .limit(MAX_REFERENCES as u64);
        self.select(mails, |cells| {
            Ok(ThreadEmail { inbound: cells.take()?, sender: cells.take()?, payload: cells.take()?, external_id: cells.take()? })
        })
        .await
    }

    /// Updates an open ticket after the store sent a message in the ticket's conversation: the sort position, and since when the customer
    /// has waited.
    pub fn bump_answered_ticket(&self, ticket: &TicketId, at: Timestamp) -> Result<()> {
        use tickets::Column;
        // Only inbound messages after the sent message still wait for an answer.
        let mut waiting = Query::select();
        waiting
            .expr(Expr::col(messages::Column::SentAt).min())
            .from(messages::Entity)
            .and_where(messages::Column::StoreId.eq(self.store()))
            .and_where(equal_columns(messages::Column::ConversationId, Column::ConversationId))
            .and_where(is(messages::Column::Inbound, true))
            .and_where(messages::Column::SentAt.gt(at));
        let sort_at = Expr::case(Column::SortAt.lt(at), at).finally(Expr::col(Column::SortAt));
        let waiting_since = Expr::case(Column::WaitingSince.lte(at), waiting).finally(Expr::col(Column::WaitingSince));
        let bumped = tickets::Entity::update_many()
            .col_expr(Column::SortAt, sort_at.into())
            .col_expr(Column::WaitingSince, waiting_since.into())
            .filter(Column::StoreId.eq(self.store()))
            .filter(Column::Id.eq(ticket));
        self.execute_deferred(&bumped)
    }

    /// Puts a message into the outbox.
    pub fn put_outbox_entry(&self, outbox_entry: &OutboxEntry) -> Result<()> {
        self.insert_deferred(outbound::ActiveModel {
            position: NotSet,
            store_id: Set(self.store().to_string()),
            message_id: Set(outbox_entry.message_id.to_string()),
            conversation_id: Set(outbox_entry.conversation_id.to_string()),
            account_id: Set(outbox_entry.account_id.to_string()),
            parcel: Set(json(outbox_entry)),
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

    /// Stores the delivery state of a message and the reason of a failure. Returns the message, or `None` if it does not exist.
    pub async fn save_delivery(&self, id: &MessageId, delivery: Delivery, failure: Option<&str>) -> Result<Option<Message>> {
        let saved = Query::update()
            .table(messages::Entity)
            .values([(messages::Column::Delivery, delivery.as_str().into()), (messages::Column::Failure, failure.into())])
            .and_where(messages::Column::StoreId.eq(self.store()))
            .and_where(messages::Column::Id.eq(id))
            .returning(Query::returning().expr(Expr::cust(Message::columns())))
            .to_owned();
        Ok(self.returned(&saved, Message::decode).await?.pop())
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
        use messages::{Column, Entity};
        let mut others = Query::select();
        others.expr(Expr::Constant(1.into())).from(Entity).and_where(Column::StoreId.eq(self.store()));
        others.and_where(Column::ExternalId.is_not_null());
        others.and_where(Column::AccountId.eq(&message.account_id)).and_where(Column::ExternalId.eq(external_id));
        let saved = Entity::update_many()
            .col_expr(Column::ExternalId, Expr::value(external_id))
            .filter(Column::StoreId.eq(self.store()))
            .filter(Column::Id.eq(&message.id))
            .filter(Expr::not_exists(others));
        Ok(self.execute(&saved).await? == 1)
    }

    /// Stores the id by which the channel identifies a conversation (its thread id) in the conversation of this message. Does nothing if
    /// another conversation of the account has this id.
    pub async fn save_thread_id(&self, message: &Message, reference_id: &str) -> Result<()> {
        use conversations::{Column, Entity};
        let mut others = Query::select();
        others.expr(Expr::Constant(1.into())).from(Entity).and_where(Column::StoreId.eq(self.store()));
        others.and_where(Column::AccountId.eq(&message.account_id)).and_where(Column::ReferenceId.eq(reference_id));
        let saved = Entity::update_many()
            .col_expr(Column::ReferenceId, Expr::value(reference_id))
            .filter(Column::StoreId.eq(self.store()))
            .filter(Column::Id.eq(&message.conversation_id))
            .filter(Expr::not_exists(others));
        self.execute(&saved).await?;
        Ok(())
    }
}

impl Db {
    /// Returns the earliest time in the column `due_at` of a queue, in any store.
    pub(super) async fn next_due<C: ColumnTrait>(&self, due_at: C, store_id: C) -> Result<Option<Timestamp>> {
        let next = |of: Option<&StoreId>| {
            let mut query = Query::select();
            query.column(due_at.as_column_ref()).from(due_at.entity_name()).and_where(due_at.is_not_null());
            query.and_where_option(of.map(|store| store_id.eq(store))).order_by(due_at.as_column_ref(), Order::Asc).limit(1).to_owned()
        };
        Ok(self.across_stores(next, |cells| cells.take()).await?.into_iter().min())
    }

    /// Returns the earliest time at which an attempt to send a message is due, in any store.
    pub async fn next_message_at(&self) -> Result<Option<Timestamp>> {
        self.next_due(outbound::Column::DueAt, outbound::Column::StoreId).await
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
            let mut query = due(now, of);
            // Leaves out the stores and accounts at their limit of concurrent attempts. The query reads at most `CANDIDATES` messages:
            // without this condition, all of them might be messages that cannot be sent now.
            for store in room.full_stores() {
                query.and_where(outbound::Column::StoreId.ne(store));
            }
            for (store, account) in room.full() {
                query.cond_where(
                    Condition::all().not().add(outbound::Column::StoreId.eq(store)).add(outbound::Column::AccountId.eq(account)),
                );
            }
            query
        };
        let due = self.across_stores(of_room, |cells| decode_due(cells).map(|(_, place)| place)).await?;
        let mut claimed =
            self.claim_by_store(room.allotted(due), |store, allotted| self.claim_messages_of(store, allotted, now, lease, claim)).await?;
        claimed.sort_by_key(|one| one.position);
        Ok(claimed)
    }

    /// Claims due messages of a store. `allotted` says for each account how many messages may be claimed.
    async fn claim_messages_of(
        &self,
        store: StoreId,
        mut allotted: Allotment<StoreAccount>,
        now: Timestamp,
        lease: Timestamp,
        claim: &str,
    ) -> Result<Vec<ClaimedMessage>> {
        use outbound::Column;
        let mut query = due(now, Some(&store));
        // Reads only the messages of accounts for which an attempt may start. The query reads at most `CANDIDATES` messages: without this
        // condition, all of them might be messages of other accounts.
        query.and_where(among(Column::AccountId, allotted.targets().map(|(_, account)| account)));
        query.lock_with_behavior(LockType::Update, LockBehavior::SkipLocked);
        let tx = self.begin().await?;
        let due = tx.select(query, decode_due).await?;
        let chosen: Vec<i64> = due.into_iter().filter(|(_, place)| allotted.take(place)).map(|(position, _)| position).collect();
        if chosen.is_empty() {
            tx.commit().await?;
            return Ok(Vec::new());
        }
        let returned = [Column::Position, Column::Claim, Column::Attempts, Column::Parcel, Column::AccountId];
        let claims = Query::update()
            .table(outbound::Entity)
            .values([(Column::Claim, claim.into()), (Column::DueAt, lease.into())])
            .value(Column::Attempts, Expr::col(Column::Attempts).add(1_i64))
            .and_where(Column::StoreId.eq(&store))
            .and_where(among(Column::Position, chosen.iter().copied()))
            .returning(Query::returning().columns(returned))
            .to_owned();
        let bridges = endpoints(&tx, self.secret_keys(), &store, &chosen, now).await?;
        let decode = |cells: &mut Cells<'_>| {
            let (position, claim, attempts, outbox_entry) = (cells.take()?, cells.take()?, cells.take()?, cells.take()?);
            let bridge = bridges.get(&cells.take()?).cloned();
            Ok(ClaimedMessage { position, claim, attempts, outbox_entry, bridge })
        };
        let claimed = tx.returned(&claims, decode).await?;
        tx.commit().await?;
        Ok(claimed)
    }
}

/// Returns the query for the due messages of one store or of all stores, at most `CANDIDATES`, the longest due first.
fn due(now: Timestamp, of: Option<&StoreId>) -> SelectStatement {
    use outbound::{Column, Entity};
    let mut earlier = Query::select();
    earlier.expr(Expr::Constant(1.into())).from_as(Entity, "earlier");
    for column in [Column::StoreId, Column::ConversationId] {
        earlier.and_where(Expr::col(("earlier", column)).equals(column.as_column_ref()));
    }
    earlier.and_where(Expr::col(("earlier", Column::Position)).lt(Expr::col(Column::Position.as_column_ref())));
    let mut query = Query::select();
    query.columns([Column::Position, Column::StoreId, Column::AccountId]).from(Entity);
    query.and_where(Expr::not_exists(earlier)).and_where(Column::DueAt.lte(now));
    query.and_where_option(of.map(|store| Column::StoreId.eq(store)));
    query.order_by(Column::DueAt, Order::Asc).order_by(Column::Position, Order::Asc).limit(CANDIDATES);
    query
}

fn decode_due(cells: &mut Cells<'_>) -> Result<(i64, StoreAccount)> {
    Ok((cells.take()?, (cells.take()?, cells.take()?)))
}
