//! Queries of customer-facing messages and internal comments. Lists are newest first.

use std::sync::LazyLock;

use crate::{
    domain::{
        ids::{ConversationId, StoreId},
        messages::{Comment, Message},
        paging::{Page, PageRequest, Position},
        tickets::TicketWindow,
        time::Timestamp,
    },
    store::{
        Db, Result,
        entity::{internal_comments, messages},
        parameterised_sql::Sql,
        row_decoding::{Cells, Row, column_list, columns},
        statement::pages::PagedRow,
    },
};

impl Row for Message {
    type Entity = messages::Entity;

    fn columns() -> &'static str {
        columns!(
            messages: Id, ConversationId, AccountId, Inbound, ChannelSentAt, SentAt, Text, Images, Kind, AuthorUserId, IsSentFromApp,
            Sender, Payload, CreatedAt, UpdatedAt
        )
    }

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        let (id, conversation_id, account_id, inbound) = (cells.take()?, cells.take()?, cells.take()?, cells.take()?);
        let (channel_sent_at, sort_at): (Option<Timestamp>, _) = (cells.take()?, cells.take()?);
        Ok(Self {
            id,
            conversation_id,
            account_id,
            inbound,
            sent_at: channel_sent_at.unwrap_or(sort_at),
            sort_at,
            text: cells.take()?,
            images: cells.take()?,
            kind: cells.take()?,
            author_user_id: cells.take()?,
            is_sent_from_app: cells.take()?,
            sender: cells.take()?,
            payload: cells.take()?,
            created_at: cells.take()?,
            updated_at: cells.take()?,
        })
    }
}

impl PagedRow for Message {
    const SORT: messages::Column = messages::Column::SentAt;

    fn position(&self) -> Position {
        Position::new(self.sort_at, self.id.as_str())
    }
}

impl Row for Comment {
    type Entity = internal_comments::Entity;

    fn columns() -> &'static str {
        use internal_comments::Column::{ConversationId, CreatedAt, CreatedBy, Id, SentAt, Text, UpdatedAt};
        // A comment has no account of its own: the subquery reads that of its conversation.
        static SQL: LazyLock<String> = LazyLock::new(|| {
            let stored = column_list(&[Id, ConversationId, Text, CreatedBy, SentAt, CreatedAt, UpdatedAt]);
            format!("{stored}, (SELECT c.account_id FROM conversations c WHERE c.store_id = $1 AND c.id = comments.conversation_id)")
        });
        &SQL
    }

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.take()?,
            conversation_id: cells.take()?,
            text: cells.take()?,
            created_by: cells.take()?,
            sent_at: cells.take()?,
            created_at: cells.take()?,
            updated_at: cells.take()?,
            account_id: cells.take()?,
        })
    }
}

impl PagedRow for Comment {
    const SORT: internal_comments::Column = internal_comments::Column::SentAt;

    fn position(&self) -> Position {
        Position::new(self.sent_at, self.id.as_str())
    }
}

impl Db {
    pub async fn messages(&self, store: &StoreId, window: &TicketWindow, page: &PageRequest) -> Result<Page<Message>> {
        self.page(message_conditions(store, window, page), page).await
    }

    /// Returns the messages among `ids` that exist, in any order.
    pub async fn messages_by_id(&self, store: &StoreId, ids: &[&str]) -> Result<Vec<Message>> {
        self.rows_by_id(store, ids).await
    }

    pub async fn comments(&self, store: &StoreId, conversation: &ConversationId, page: &PageRequest) -> Result<Page<Comment>> {
        let mut sql = Sql::of(store, "store_id = $1");
        sql.push(" AND conversation_id = ").text(conversation.as_str());
        self.page(sql, page).await
    }
}

pub(super) fn message_conditions(store: &StoreId, window: &TicketWindow, page: &PageRequest) -> Sql {
    let mut sql = Sql::of(store, "store_id = $1");
    sql.push(" AND conversation_id = ").text(window.conversation_id.as_str());
    if let Some(after) = window.after {
        sql.push(" AND sent_at > ").integer(after.millis());
    }
    if let Some(until) = window.until {
        sql.and_below(page, "sent_at <= ", until);
    }
    sql
}
