//! Conversation operations: the schema of a conversation, and the handlers that list conversations, mark them as read and change their
//! labels (API contract, sections 2.5 and 4.1).

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use crate::{
    domain::{
        conversations as domain,
        conversations::ConversationView,
        ids::{ContactId, ConversationId},
        time::Timestamp,
    },
    http::{
        machinery::{
            auth::{Authorised, ConversationsRead, ConversationsWrite},
            body::Body,
            error_responses::{ApiError, Change, Failure, Lookup},
            expand_parameter::{ConversationExpand, Expand, NoExpand},
            idempotency::{Acknowledgement, IdempotencyKey},
            paging::{PageStep, Paged},
            params::{CursorText, Id, PageSize, Query},
            success_responses::{One, Reply},
        },
        schemas::{related_objects::RelatedChannel, value_types::ChannelName, write_inputs::ReadMark},
    },
    revision::wire::{LabelsInput, PageParam},
};

/// A conversation with a contact on one channel account.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// Identifies the conversation: the value of `conversationId` in requests on messages, comments and labels.
    pub id: String,
    /// The channel of the conversation's account.
    pub channel: ChannelName,
    /// The title of the conversation. If this server created the conversation, it is the contact's `fullName` at that time.
    pub display_name: String,
    /// The contact who writes in the conversation.
    pub contact_id: String,
    /// The channel's own id of the conversation.
    pub reference_id: String,
    /// Ids of the labels on the conversation; GET /labels returns their texts and colours.
    pub label_ids: Vec<String>,
    /// Whether the conversation is marked as spam. Messages in a spam conversation neither open nor reopen a ticket.
    pub is_spam: bool,
    /// The number of messages from the contact since the conversation was last marked as read.
    pub unread_msg_cnt: i64,
    /// The number of customer-facing messages.
    pub all_msg_cnt: i64,
    /// When the conversation was created. Lists sort a conversation by its newest message, or by this time if it has no messages.
    pub created_at: Timestamp,
    /// When the conversation last changed: by a message, a change of labels, or being marked as read.
    pub updated_at: Timestamp,
    /// The channel account; omitted with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The channel account; only with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<RelatedChannel>,
    /// The subject of the e-mail thread; only on e-mail channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_subject: Option<String>,
    /// When the contact last sent a message; absent if the contact has sent none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_recipient_msg_date: Option<Timestamp>,
    /// The newest message; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_msg: Option<LastMessage>,
}

/// The newest message of a conversation.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct LastMessage {
    /// The first 100 characters of the message's text; empty if it has no text.
    pub snippet: String,
    /// Whether the contact sent the message; `Recipient` in the name of the property stands for the contact.
    pub sent_by_recipient: bool,
    /// When the newest message was sent.
    pub sent_at: Timestamp,
}

impl From<domain::LastMessage> for LastMessage {
    fn from(last: domain::LastMessage) -> Self {
        Self { snippet: last.snippet, sent_by_recipient: last.sent_by_recipient, sent_at: last.sent_at }
    }
}

impl From<ConversationView> for Conversation {
    fn from(view: ConversationView) -> Self {
        let conversation = view.conversation;
        Self {
            id: conversation.id.into_string(),
            channel: conversation.channel.into(),
            display_name: conversation.display_name,
            contact_id: conversation.contact_id.into_string(),
            reference_id: conversation.reference_id,
            label_ids: conversation.label_ids.into_iter().map(|id| id.into_string()).collect(),
            is_spam: conversation.is_spam,
            unread_msg_cnt: conversation.unread_count,
            all_msg_cnt: conversation.message_count,
            created_at: conversation.created_at,
            updated_at: conversation.updated_at,
            account_id: view.account.is_none().then(|| conversation.account_id.into_string()),
            account: view.account.map(Into::into),
            email_subject: conversation.email_subject,
            last_recipient_msg_date: conversation.last_inbound_at,
            last_msg: conversation.last_message.map(Into::into),
        }
    }
}

/// Read operations on conversations.
#[derive(Debug)]
pub struct ConversationReads;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Conversations")]
impl ConversationReads {
    /// List conversations
    ///
    /// With `conversationId`, lists that one conversation; with `contactId`, the contact's conversations, the one with the newest message
    /// first. At least one of the two ids is required; if both are sent, the conversation must be the contact's.
    #[oai(path = "/conversations", method = "get", operation_id = "listConversations")]
    #[expect(clippy::too_many_arguments, reason = "one argument a documented parameter")]
    async fn list_conversations(
        &self,
        request: Authorised<ConversationsRead>,
        /// The only conversation to list.
        #[oai(name = "conversationId")]
        conversation_id: Query<Option<Id<ConversationId>>>,
        /// The contact whose conversations are listed.
        #[oai(name = "contactId")]
        contact_id: Query<Option<Id<ContactId>>>,
        /// Conversations per page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        /// A page number that the answer repeats in `x-pagination-page`. It does not select records; `cursor` does.
        page: PageParam,
        /// Returns the channel account as an object in place of `accountId`.
        expand: Query<Expand<ConversationExpand>>,
    ) -> Result<Reply<Paged<Conversation>>, Failure<Lookup>> {
        let (conversation, contact) = (conversation_id.0.map(|id| id.0), contact_id.0.map(|id| id.0));
        if conversation.is_none() && contact.is_none() {
            return Err(ApiError::field("conversationId", "or `contactId` is required").into());
        }
        let walk = PageStep::step(&request, "listConversations", page_size.0.0, &cursor.0, &page, &format!("{conversation:?}{contact:?}"))?;
        let conversations = request
            .reads_many()
            .await?
            .conversations(request.store(), conversation.as_ref(), contact.as_ref(), walk.request(), expand.0.0.0)
            .await?;
        Ok(walk.reply(&request, conversations))
    }
}

/// Write operations on conversations.
#[derive(Debug)]
pub struct ConversationWrites;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Conversations")]
impl ConversationWrites {
    /// Mark a conversation read
    ///
    /// Sets `unreadMsgCnt` of a conversation to 0. The conversation must have an open ticket; otherwise the answer is 404.
    #[oai(path = "/conversations/mark-read", method = "post", operation_id = "markConversationRead")]
    async fn mark_conversation_read(
        &self,
        request: Authorised<ConversationsWrite>,
        body: Body<ReadMark>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let mark = body.parse()?;
        let by = request.by::<(), Acknowledgement, _, _>("markConversationRead", &key, &body);
        let outcome = request.state.service.mark_conversation_read(&by, mark.conversation_id.into()).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Update a conversation's labels
    ///
    /// Adds labels to a conversation and removes labels from it. Adding a label that is present, or removing one that is absent, changes
    /// nothing.
    #[oai(path = "/conversations/labels", method = "patch", operation_id = "updateConversationLabels")]
    async fn update_conversation_labels(
        &self,
        request: Authorised<ConversationsWrite>,
        body: Body<LabelsInput>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let update = body.parse()?.check()?;
        let by = request.by::<(), Acknowledgement, _, _>("updateConversationLabels", &key, &body);
        let outcome = request.state.service.update_conversation_labels(&by, update).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }
}
