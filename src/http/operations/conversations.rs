//! Conversations: sections 2.5 and 4.1.

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
            error::{ApiError, Change, Failure, Lookup},
            expand::{ConversationExpand, Expand, NoExpand},
            idempotency::{Acknowledgement, IdempotencyKey},
            paging::{PageStep, Paged},
            params::{CursorText, Id, PageSize, Query},
            reply::{One, Reply},
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
    /// Identifies the conversation; sent as `conversationId` by operations on messages, comments and labels.
    pub id: String,
    /// The channel of the account that the conversation is held on.
    pub channel: ChannelName,
    /// The title of the conversation; one that this service began has the contact's `fullName` of that time.
    pub display_name: String,
    /// The contact who writes in the conversation.
    pub contact_id: String,
    /// The channel's own id of the conversation.
    pub reference_id: String,
    /// Ids of the labels on the conversation; the list of labels has their texts and colours.
    pub label_ids: Vec<String>,
    /// Whether the conversation is marked as spam; messages in it open no ticket.
    pub is_spam: bool,
    /// Messages that no user has read yet.
    pub unread_msg_cnt: i64,
    /// Customer-facing messages.
    pub all_msg_cnt: i64,
    /// When the conversation was begun; without any message, this is also its place in the list.
    pub created_at: Timestamp,
    /// When the conversation last changed; messages, labels and marking it as read count.
    pub updated_at: Timestamp,
    /// The channel account; omitted with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// The channel account; with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<RelatedChannel>,
    /// On e-mail channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_subject: Option<String>,
    /// When the contact last wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_recipient_msg_date: Option<Timestamp>,
    /// The newest message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_msg: Option<LastMessage>,
}

/// The newest message of a conversation.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct LastMessage {
    /// The beginning of its text; empty where it has none.
    pub snippet: String,
    /// Whether the contact sent it.
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

#[OpenApi(tag = "crate::http::document::tags::Tag::Conversations")]
impl ConversationReads {
    /// List conversations
    ///
    /// With `conversationId`, a page of that one conversation; with `contactId`, the contact's conversations, the one
    /// with the newest message first. At least one of the two is required; both must belong together.
    #[oai(path = "/conversations", method = "get", operation_id = "listConversations")]
    #[expect(clippy::too_many_arguments, reason = "one argument a documented parameter")]
    async fn list_conversations(
        &self,
        request: Authorised<ConversationsRead>,
        /// The conversation.
        #[oai(name = "conversationId")]
        conversation_id: Query<Option<Id<ConversationId>>>,
        /// The contact.
        #[oai(name = "contactId")]
        contact_id: Query<Option<Id<ContactId>>>,
        /// Conversations a page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// Where the page begins: `x-pagination-next-cursor` of the page before.
        cursor: Query<CursorText>,
        /// Echoed in `x-pagination-page`; does not move through the collection.
        page: PageParam,
        /// Replaces `accountId` by an object.
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

/// Writes on conversations.
#[derive(Debug)]
pub struct ConversationWrites;

#[OpenApi(tag = "crate::http::document::tags::Tag::Conversations")]
impl ConversationWrites {
    /// Mark a conversation read
    ///
    /// Clears the unread count of a conversation with an open ticket.
    #[oai(path = "/conversations/mark-read", method = "post", operation_id = "markConversationRead")]
    async fn mark_conversation_read(
        &self,
        request: Authorised<ConversationsWrite>,
        body: Body<ReadMark>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
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
    /// Adds and removes labels. A label that is there already, or not there, is passed over.
    #[oai(path = "/conversations/labels", method = "patch", operation_id = "updateConversationLabels")]
    async fn update_conversation_labels(
        &self,
        request: Authorised<ConversationsWrite>,
        body: Body<LabelsInput>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
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
