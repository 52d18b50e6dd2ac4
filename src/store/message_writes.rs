//! Statements that store an inbound or outbound message, with its conversation and ticket. They run in a write transaction ([`Write`]).

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, EntityTrait, ExprTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, OnConflict, Order, Query},
};

use crate::{
    domain::{
        contacts::Contact,
        conversations::Conversation,
        ids::{AccountId, ConversationId, MessageId, TicketId},
        messages::Message,
        outbound_messages::Delivery,
        tickets::Ticket,
        time::Timestamp,
    },
    store::{
        Error, Result,
        entity::{contacts, conversations, counters, messages, stores, tickets},
        import::DERIVE_TICKETS,
        row_decoding::{Row, StoredRecord},
        sql_from_entities::{FixedQuery, among, equals_parameter, records, records_by},
        stored_values::json,
        transaction::store_transaction::Write,
    },
};

/// The query for the latest conversation on an account whose contact has a given primary phone. Its parameters are the ids of the store and
/// of the account, and the phone.
static CONVERSATION_WITH_PHONE: FixedQuery = FixedQuery::new(|| {
    use contacts::Column::{Id, Phone, StoreId};
    let contact = Query::select()
        .column(Id)
        .from(contacts::Entity)
        .and_where(equals_parameter(StoreId, 1))
        .and_where(equals_parameter(Phone, 3))
        .take();
    let mut query = records_by::<Conversation>([conversations::Column::StoreId, conversations::Column::AccountId]);
    query.and_where(Expr::col(conversations::Column::ContactId).eq(contact));
    query.order_by(conversations::Column::SortAt, Order::Desc).order_by(conversations::Column::Id, Order::Desc).limit(1).take()
});

/// The query for the contact with a given primary e-mail address. Its parameters are the id of the store, and the address in lower case.
static CONTACT_BY_EMAIL: FixedQuery = FixedQuery::new(|| records_by::<Contact>([contacts::Column::StoreId, contacts::Column::EmailKey]));

/// The query for the contact with a given primary phone. Its parameters are the id of the store, and the phone.
static CONTACT_BY_PHONE: FixedQuery = FixedQuery::new(|| records_by::<Contact>([contacts::Column::StoreId, contacts::Column::Phone]));

/// The query for the newest message of a conversation. Its parameters are the ids of the store and of the conversation.
static NEWEST_MESSAGE: FixedQuery = FixedQuery::new(|| {
    use messages::Column::{ConversationId, Id, SentAt, StoreId};
    let mut query = records_by::<Message>([StoreId, ConversationId]);
    query.order_by(SentAt, Order::Desc).order_by(Id, Order::Desc).limit(1).take()
});

/// The query for the open ticket of a conversation. Its parameters are the ids of the store and of the conversation.
static OPEN_TICKET: FixedQuery = FixedQuery::new(|| {
    use tickets::Column::{ConversationId, IsOpen, StoreId};
    records_by::<Ticket>([StoreId, ConversationId]).and_where(IsOpen.eq(true)).take()
});

/// The query for the most recently opened ticket of a conversation. Its parameters are the ids of the store and of the conversation.
static LATEST_TICKET: FixedQuery = FixedQuery::new(|| {
    use tickets::Column::{ConversationId, Id, OpenedAt, StoreId};
    let mut query = records_by::<Ticket>([StoreId, ConversationId]);
    query.order_by(OpenedAt, Order::Desc).order_by(Id, Order::Desc).limit(1).take()
});

/// A message that was received earlier with the same external id, so that the new delivery is a duplicate.
#[derive(Debug)]
pub struct ReceivedMessage {
    pub message_id: MessageId,
    pub conversation_id: ConversationId,
    pub received_at: Timestamp,
}

impl Write {
    /// Returns a setting of the store: for how many hours after its close a ticket is reopened by an inbound message.
    pub async fn reopen_window_hours(&self) -> Result<Option<i64>> {
        let query = stores::Entity::find_by_id(self.store().as_str()).select_only().column(stores::Column::ReopenWindowHours);
        Ok(self.select(query, |cells| cells.take()).await?.pop())
    }

    pub async fn message_of_channel(&self, account: &AccountId, external_id: &str) -> Result<Option<ReceivedMessage>> {
        let query = messages::Entity::find()
            .select_only()
            .columns([messages::Column::Id, messages::Column::ConversationId, messages::Column::CreatedAt])
            .filter(messages::Column::StoreId.eq(self.store()))
            .filter(messages::Column::AccountId.eq(account))
            .filter(messages::Column::ExternalId.eq(external_id))
            // SQLite uses the partial index only if the statement contains the index's condition.
            .filter(messages::Column::ExternalId.is_not_null());
        let former = self.select(query, |cells| {
            Ok(ReceivedMessage { message_id: cells.take()?, conversation_id: cells.take()?, received_at: cells.take()? })
        });
        Ok(former.await?.pop())
    }

    /// Returns the conversation's ticket that was open at the time `at`.
    pub async fn ticket_at(&self, conversation: &ConversationId, at: Timestamp) -> Result<Option<TicketId>> {
        let query = tickets::Entity::find()
            .select_only()
            .column(tickets::Column::Id)
            .filter(tickets::Column::StoreId.eq(self.store()))
            .filter(tickets::Column::ConversationId.eq(conversation))
            .filter(tickets::Column::OpenedAt.lte(at))
            .filter(Condition::any().add(tickets::Column::ClosedAt.is_null()).add(tickets::Column::ClosedAt.gte(at)))
            .order_by_desc(tickets::Column::OpenedAt)
            .order_by_desc(tickets::Column::Id)
            .limit(1);
        Ok(self.select(query, |cells| cells.take()).await?.pop())
    }

    /// Finds the conversation whose `reference_id` is `name`, the channel's id of the conversation. If there is none, finds the latest
    /// conversation whose `reference_id` is one of `former`, other spellings of the id, which an import may have stored. The conversation
    /// is locked until the end of the transaction.
    pub async fn conversation_of_thread(&self, account: &AccountId, name: &str, former: &[String]) -> Result<Option<Conversation>> {
        use conversations::Column::{AccountId, Id, ReferenceId, SortAt, StoreId};
        let names = std::iter::once(name).chain(former.iter().map(String::as_str));
        let mut query = records::<Conversation>();
        query.and_where(StoreId.eq(self.store())).and_where(AccountId.eq(account)).and_where(among(ReferenceId, names));
        if !former.is_empty() {
            query.order_by_expr(ReferenceId.eq(name), Order::Desc).order_by(SortAt, Order::Desc).order_by(Id, Order::Desc).limit(1);
        }
        Ok(self.select_for_update(query, Conversation::decode).await?.pop())
    }

    /// Finds the latest conversation on an account whose contact has this primary phone. The conversation is locked until the end of the
    /// transaction.
    pub async fn conversation_with_phone(&self, account: &AccountId, phone: &str) -> Result<Option<Conversation>> {
        self.first_locked(CONVERSATION_WITH_PHONE.sql(self.store(), &[account.as_str(), phone])).await
    }

    /// Finds the contact with this primary e-mail address, or else with this primary phone, and locks it. If the transaction inserts a
    /// conversation for the contact, the foreign key check at its commit locks the contact as well. Without the lock here, that check could
    /// wait for the contact while the transaction holds the lock on the counter of tickets, for which other transactions wait.
    pub async fn contact_known_by(&self, email: Option<&str>, phone: Option<&str>) -> Result<Option<Contact>> {
        for (query, value) in [(&CONTACT_BY_EMAIL, email.map(str::to_lowercase)), (&CONTACT_BY_PHONE, phone.map(str::to_owned))] {
            let Some(value) = value else { continue };
            if let Some(contact) = self.first_locked(query.sql(self.store(), &[&value])).await? {
                return Ok(Some(contact));
            }
        }
        Ok(None)
    }

    /// Inserts a conversation without messages.
    pub async fn insert_conversation(&self, conversation: &Conversation) -> Result<()> {
        self.insert(conversations::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(conversation.id.to_string()),
            channel: Set(conversation.channel.as_str().to_owned()),
            account_id: Set(conversation.account_id.to_string()),
            contact_id: Set(conversation.contact_id.to_string()),
            display_name: Set(conversation.display_name.clone()),
            reference_id: Set(conversation.reference_id.clone()),
            email_subject: Set(conversation.email_subject.clone()),
            label_ids: Set("[]".to_owned()),
            label_marks: Set(0),
            is_spam: Set(false),
            unread_count: Set(0),
            message_count: Set(0),
            sort_at: Set(conversation.sort_at.millis()),
            created_at: Set(conversation.created_at.millis()),
            updated_at: Set(conversation.updated_at.millis()),
            ..Default::default()
        })
        .await
    }

    /// Inserts a message, without waiting for the outcome (see [`Write::run_deferred`]). `delivery`: the state of its delivery, if this
    /// server sends the message.
    pub fn insert_message(&self, message: &Message, external_id: Option<&str>, delivery: Option<Delivery>) -> Result<()> {
        self.insert_deferred(messages::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(message.id.to_string()),
            conversation_id: Set(message.conversation_id.to_string()),
            account_id: Set(message.account_id.to_string()),
            inbound: Set(message.inbound),
            sent_at: Set(message.sort_at.millis()),
            channel_sent_at: Set((message.sent_at != message.sort_at).then_some(message.sent_at.millis())),
            text: Set(message.text.clone()),
            images: Set(message.images.as_ref().map(json)),
            kind: Set(message.kind.clone()),
            author_user_id: Set(message.author_user_id.as_ref().map(ToString::to_string)),
            is_sent_from_app: Set(message.is_sent_from_app),
            sender: Set(message.sender.clone()),
            payload: Set(message.payload.clone()),
            external_id: Set(external_id.map(str::to_owned)),
            delivery: Set(delivery.map(|delivery| delivery.as_str().to_owned())),
            failure: NotSet,
            created_at: Set(message.created_at.millis()),
            updated_at: Set(message.updated_at.millis()),
        })
    }

    /// Returns the newest message of a conversation.
    pub async fn newest_message(&self, conversation: &ConversationId) -> Result<Option<Message>> {
        self.first(NEWEST_MESSAGE.sql(self.store(), &[conversation.as_str()]), Message::decode).await
    }

    /// Stores a conversation's counters, last message, sort position and update time, without waiting for the outcome (see
    /// [`Write::run_deferred`]).
    pub fn save_counters(&self, conversation: &Conversation) -> Result<()> {
        let last = conversation.last_message.as_ref();
        self.update_deferred(conversations::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(conversation.id.to_string()),
            unread_count: Set(conversation.unread_count),
            message_count: Set(conversation.message_count),
            last_inbound_at: Set(conversation.last_inbound_at.map(Timestamp::millis)),
            last_message_at: Set(last.map(|last| last.sent_at.millis())),
            last_message_snippet: Set(last.map(|last| last.snippet.clone())),
            last_message_inbound: Set(last.map(|last| last.sent_by_recipient)),
            sort_at: Set(conversation.sort_at.millis()),
            updated_at: Set(conversation.updated_at.millis()),
            ..Default::default()
        })
    }

    /// Reads the open ticket of a conversation, or else its latest ticket, and locks it until the end of the transaction.
    pub async fn latest_ticket(&self, conversation: &ConversationId) -> Result<Option<Ticket>> {
        for query in [&OPEN_TICKET, &LATEST_TICKET] {
            if let Some(ticket) = self.first_locked(query.sql(self.store(), &[conversation.as_str()])).await? {
                return Ok(Some(ticket));
            }
        }
        Ok(None)
    }

    /// Increments the store's counter of tickets and returns the new ticket number. The counter stays locked until the end of the
    /// transaction, so that a rollback leaves no gap in the numbers.
    pub async fn next_ticket_number(&self) -> Result<String> {
        let row = counters::ActiveModel { store_id: Set(self.store().to_string()), name: Set("ticket_number".to_owned()), value: Set(1) };
        let next = Expr::col((counters::Entity, counters::Column::Value)).add(1_i64);
        let conflict =
            OnConflict::columns([counters::Column::StoreId, counters::Column::Name]).value(counters::Column::Value, next).to_owned();
        let mut insert = counters::Entity::insert(row).on_conflict(conflict).into_query();
        insert.returning_col(counters::Column::Value);
        let value: Option<i64> = self.returned(&insert, |cells| cells.take()).await?.pop();
        value.map(|value| value.to_string()).ok_or_else(|| Error::Damaged("the counter of tickets".to_owned()))
    }

    /// Inserts an open ticket without an assignee. The caller has locked its conversation.
    pub async fn insert_ticket(&self, ticket: &Ticket) -> Result<()> {
        let conversation = conversations::Entity::find_by_id((self.store().to_string(), ticket.conversation_id.to_string()))
            .select_only()
            .column(conversations::Column::LabelMarks);
        let label_marks = self.select(conversation, |cells| cells.take()).await?.pop().unwrap_or_default();
        let row = ticket.row(self.store());
        self.insert(tickets::ActiveModel { label_marks: Set(label_marks), field_marks: Set(0), text_marks: Set(0), ..row }).await
    }

    /// Computes a ticket's `sort_at` and `waiting_since` again from its messages, and returns the ticket.
    pub async fn refresh_ticket_from_messages(&self, id: &TicketId) -> Result<Option<Ticket>> {
        self.derive_ticket(id).await?;
        self.ticket(id).await
    }

    /// Recomputes the sort positions of the conversation's closed tickets to which a new message may belong: tickets that were closed at
    /// `sort_at`, the time of the message, or later.
    pub async fn refresh_closed_tickets(&self, conversation: &ConversationId, sort_at: Timestamp) -> Result<()> {
        let mut sql = self.sql(&DERIVE_TICKETS);
        sql.push(" WHERE store_id = $1 AND conversation_id = ").text(conversation.as_str());
        sql.push(" AND is_open = FALSE AND closed_at >= ").integer(sort_at.millis());
        // Skips a ticket with a later message, whose position the new message does not change. Does not skip a ticket without messages: its
        // position is its opening time, which may be later than the new message.
        sql.push(" AND (sort_at < ").integer(sort_at.millis()).push(" OR sort_at = opened_at)");
        self.run(sql).await?;
        Ok(())
    }
}
