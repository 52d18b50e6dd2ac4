//! Use-cases that read customer-facing messages and internal comments.

use super::{Error, Result, Service};
use crate::domain::{
    conversations::Thread,
    ids::{ConversationId, StoreId, TicketId, UserId},
    messages::{Comment, CommentExpand, CommentView, Message, MessageExpand, MessageView},
    paging::{Page, PageRequest},
    tickets::TicketWindow,
};

impl Service {
    /// Returns the messages of a conversation, or only the messages that belong to a ticket, newest first. With both ids, the ticket must
    /// belong to the conversation.
    pub async fn messages(
        &self,
        store: &StoreId,
        conversation: Option<&ConversationId>,
        ticket: Option<&TicketId>,
        page: PageRequest,
        expand: MessageExpand,
    ) -> Result<Page<MessageView>> {
        let window = match (conversation, ticket) {
            (conversation, Some(id)) => {
                let window = self.db().ticket_window(store, id).await?.ok_or_else(|| Error::missing("ticketId", "ticket", id))?;
                if conversation.is_some_and(|conversation| *conversation != window.conversation_id) {
                    return Err(Error::missing("ticketId", "ticket of that conversation", id));
                }
                window
            }
            (Some(conversation), None) => TicketWindow { conversation_id: conversation.clone(), after: None, until: None },
            (None, None) => return Err(Error::invalid("conversationId", "or `ticketId` must be sent")),
        };
        let Page { rows, next, total } = self.db().messages(store, &window, &page).await?;
        let thread = match expand.conversation || expand.account || rows.is_empty() {
            // All messages belong to one conversation, so the conversation is read once. If there are no messages, this read checks that
            // the conversation exists.
            true => Some(self.thread(store, &window.conversation_id).await?),
            false => None,
        };
        let author =
            |message: &Message| -> Option<UserId> { message.author_user_id.clone().filter(|_| expand.sent_by && !message.inbound) };
        let authors: Vec<UserId> = rows.iter().filter_map(author).collect();
        let users = self.user_refs(store, authors.iter().collect()).await?;
        let view = |message: Message| MessageView {
            sent_by: author(&message).and_then(|id| users.get(&id)).cloned(),
            conversation: thread.as_ref().filter(|_| expand.conversation).map(|thread| thread.conversation.clone()),
            account: thread.as_ref().filter(|_| expand.account).and_then(|thread| thread.account.clone()),
            message,
        };
        Ok(Page { rows: rows.into_iter().map(view).collect(), next, total })
    }

    /// Returns internal comments of a conversation, newest first.
    pub async fn comments(
        &self,
        store: &StoreId,
        conversation: &ConversationId,
        page: PageRequest,
        expand: CommentExpand,
    ) -> Result<Page<CommentView>> {
        let Page { rows, next, total } = self.db().comments(store, conversation, &page).await?;
        let thread = match expand.conversation || expand.account || rows.is_empty() {
            true => Some(self.thread(store, conversation).await?),
            false => None,
        };
        let users = self.user_refs(store, rows.iter().filter(|_| expand.created_by).map(|comment| &comment.created_by).collect()).await?;
        let view = |comment: Comment| CommentView {
            created_by: users.get(&comment.created_by).cloned(),
            conversation: thread.as_ref().filter(|_| expand.conversation).map(|thread| thread.conversation.clone()),
            account: thread.as_ref().filter(|_| expand.account).and_then(|thread| thread.account.clone()),
            comment,
        };
        Ok(Page { rows: rows.into_iter().map(view).collect(), next, total })
    }

    async fn thread(&self, store: &StoreId, id: &ConversationId) -> Result<Thread> {
        self.db().thread(store, id).await?.ok_or_else(|| Error::missing("conversationId", "conversation", id))
    }
}
