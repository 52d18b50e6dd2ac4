//! Queries of conversations: a conversation by its id, the conversations of a contact, the destination of messages in a conversation, and
//! the references to a conversation and its account that messages and comments contain.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, Condition, sea_query::Query};

use crate::{
    domain::{
        conversations::{Conversation, Destination, LastMessage, Thread},
        ids::{ContactId, ConversationId, StoreId},
        paging::{Page, PageRequest, Position},
        stores_and_accounts::{Channel, ChannelRef},
        time::Timestamp,
    },
    store::{
        Db, Result,
        entity::{accounts, contacts, conversations},
        parameterised_sql::Sql,
        row_decoding::{Cells, Row, columns},
        sql_from_entities::{FixedQuery, among, equal_columns, equals_parameter},
        statement::{
            as_of::{MovingList, MovingRow},
            pages::{PagedRow, count_sql},
        },
    },
};

impl Row for Conversation {
    type Entity = conversations::Entity;

    fn columns() -> &'static str {
        columns!(
            conversations: Id, Channel, AccountId, ContactId, DisplayName, ReferenceId, LabelIds, IsSpam, UnreadCount, MessageCount,
            EmailSubject, LastInboundAt, LastMessageAt, LastMessageSnippet, LastMessageInbound, SortAt, CreatedAt, UpdatedAt
        )
    }

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.take()?,
            channel: Channel(cells.take()?),
            account_id: cells.take()?,
            contact_id: cells.take()?,
            display_name: cells.take()?,
            reference_id: cells.take()?,
            label_ids: cells.take()?,
            is_spam: cells.take()?,
            unread_count: cells.take()?,
            message_count: cells.take()?,
            email_subject: cells.take()?,
            last_inbound_at: cells.take()?,
            last_message: last_message(cells)?,
            sort_at: cells.take()?,
            created_at: cells.take()?,
            updated_at: cells.take()?,
        })
    }
}

/// Decodes the three columns of the last message. All of them are NULL if the conversation has no message.
fn last_message(cells: &mut Cells<'_>) -> Result<Option<LastMessage>> {
    let (sent_at, snippet, inbound): (Option<i64>, Option<String>, Option<bool>) = (cells.take()?, cells.take()?, cells.take()?);
    Ok(sent_at.map(|sent_at| LastMessage {
        snippet: snippet.unwrap_or_default(),
        sent_by_recipient: inbound.unwrap_or_default(),
        sent_at: Timestamp::from_millis(sent_at),
    }))
}

impl PagedRow for Conversation {
    const SORT: conversations::Column = conversations::Column::SortAt;

    fn position(&self) -> Position {
        Position::new(self.sort_at, self.id.as_str())
    }
}

impl MovingRow for Conversation {}

/// The query for a conversation and its account, as [`Db::thread`] returns them. Its parameters are the ids of the store and of the
/// conversation.
static THREAD: FixedQuery = FixedQuery::new(|| {
    use conversations::{
        Column::{AccountId, Channel, DisplayName, Id, StoreId},
        Entity,
    };
    let same = Condition::all().add(equal_columns(accounts::Column::StoreId, StoreId)).add(equal_columns(accounts::Column::Id, AccountId));
    Query::select()
        .columns([Id, DisplayName, Channel, AccountId].map(|column| (Entity, column)))
        .columns([accounts::Column::Name, accounts::Column::Channel].map(|column| (accounts::Entity, column)))
        .from(Entity)
        .left_join(accounts::Entity, same)
        .and_where(equals_parameter((Entity, StoreId), 1))
        .and_where(equals_parameter((Entity, Id), 2))
        .take()
});

impl Db {
    /// Returns the destination of messages in these conversations: the account that sends the messages, and the name of the contact.
    /// Conversations that do not exist are left out.
    pub async fn destinations(&self, store: &StoreId, ids: &[&ConversationId]) -> Result<HashMap<ConversationId, Destination>> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let same = Condition::all()
            .add(equal_columns(contacts::Column::StoreId, conversations::Column::StoreId))
            .add(equal_columns(contacts::Column::Id, conversations::Column::ContactId));
        let query = Query::select()
            .columns([conversations::Column::Id, conversations::Column::AccountId].map(|column| (conversations::Entity, column)))
            .column((contacts::Entity, contacts::Column::FullName))
            .from(conversations::Entity)
            .inner_join(contacts::Entity, same)
            .and_where(conversations::Column::StoreId.eq(store))
            .and_where(among(conversations::Column::Id, ids.iter().copied()))
            .to_owned();
        let destination =
            |cells: &mut Cells<'_>| Ok((cells.take()?, Destination { account_id: cells.take()?, contact_name: cells.take()? }));
        Ok(self.select(query, destination).await?.into_iter().collect())
    }

    pub async fn conversation(&self, store: &StoreId, id: &ConversationId) -> Result<Option<Conversation>> {
        self.row_by_id(store, id.as_str()).await
    }

    /// Returns a page of a contact's conversations, sorted by their last message, the newest first.
    pub async fn conversations_of_contact(&self, store: &StoreId, contact: &ContactId, page: &PageRequest) -> Result<Page<Conversation>> {
        let conditions = Self::conversations_of(store, contact);
        let counted = count_sql(Conversation::table(), conditions.clone());
        let moved = |sql: &mut Sql| _ = sql.push("store_id = $1 AND contact_id = ").text(contact.as_str());
        self.page_with_counted_total(MovingList { source: Conversation::table().into(), conditions, moved: &moved }, page, counted).await
    }

    /// Returns the condition that selects a contact's conversations. No index has them in the order of the list, since every new message
    /// would have to update that index. So a page reads and sorts all conversations of the contact.
    pub(super) fn conversations_of(store: &StoreId, contact: &ContactId) -> Sql {
        let mut sql = Sql::of(store, "store_id = $1");
        sql.push(" AND contact_id = ").text(contact.as_str()).unbounded();
        sql
    }

    /// Returns references to a conversation and its account, as the conversation's messages and comments show them.
    pub async fn thread(&self, store: &StoreId, id: &ConversationId) -> Result<Option<Thread>> {
        self.first(THREAD.sql(store, &[id.as_str()]), |cells| {
            let conversation = ChannelRef { id: cells.take()?, name: cells.take()?, channel: Channel(cells.take()?) };
            let account_id: String = cells.take()?;
            let account = match (cells.take()?, cells.take()?) {
                (Some(name), Some(channel)) => Some(ChannelRef { id: account_id.clone(), name, channel: Channel(channel) }),
                _ => None,
            };
            Ok(Thread { conversation, account_id: account_id.into(), account })
        })
        .await
    }
}
