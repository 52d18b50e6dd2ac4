//! Message operations: the schemas of an internal comment and of a message's sender, and the handlers for customer-facing messages and
//! internal comments (contract, sections 2.8, 2.9 and 4.1). The schema of a message depends on the revision of the contract (A or B): see
//! [`crate::revision::wire`].

use poem_openapi::{Enum, Object, OpenApi};
use serde::Serialize;

use crate::{
    domain::{
        ids::{ConversationId, TicketId},
        messages::{CommentExpand, CommentView, MessageExpand},
        time::Timestamp,
    },
    http::{
        machinery::{
            auth::{Authorised, MessagesRead, MessagesWrite},
            body::Body,
            error_responses::{ApiError, Change, Failure, Lookup},
            expand_parameter::{Expand, NoExpand},
            idempotency::{Acknowledgement, IdempotencyKey},
            paging::{PageStep, Paged},
            params::{CursorText, Id, MessagesPageSize, PageSize, Query, Required},
            success_responses::{One, Reply},
        },
        schemas::related_objects::{Author, RelatedChannel},
    },
    revision::wire::{CommentInput, Message, PageParam, TextInput},
};

/// The sender of a message, as the channel describes it.
#[derive(Debug, Object)]
#[oai(rename_all = "camelCase")]
pub struct Sender {
    /// The sender's id on the channel.
    id: String,
    /// The sender's name on the channel; absent if none is known.
    name: Option<String>,
    /// The URL of a picture of the sender; absent if none is known.
    avatar_url: Option<String>,
    /// The kind of the sender. It is `contact` on each message that this server received from a contact; an import may set any value.
    r#type: SenderType,
}

/// The kind of the sender of a message: the contact, a user of the store, a bot, or the system.
#[derive(Debug, Clone, Copy, Enum)]
#[oai(rename_all = "lowercase")]
enum SenderType {
    Contact,
    User,
    Bot,
    System,
}

/// A note that the customer does not see.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct InternalComment {
    /// Identifies the comment.
    pub id: String,
    /// The conversation that the comment was added to.
    pub conversation_id: String,
    /// The channel account of the comment's conversation.
    pub account_id: String,
    /// The text of the comment and who wrote it.
    pub note_data: NoteData,
    /// When the comment was written. Lists are ordered by this time, the newest first.
    pub sent_at: Timestamp,
    /// When the comment was recorded; the same as `sentAt` for comments added over this API.
    pub created_at: Timestamp,
    /// When the comment was last changed; no operation of this API edits a comment.
    pub updated_at: Timestamp,
    /// The conversation; only with `expand=conversation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<RelatedChannel>,
    /// The channel account; only with `expand=account`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<RelatedChannel>,
}

/// The text and the author of an internal comment.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct NoteData {
    /// The comment in plain text; a token such as `<@userId:name@>` mentions a user.
    pub text: String,
    /// The `userId` of the author; with `expand=createdBy`, the author as an object.
    pub created_by: CreatedBy,
}

crate::http::schemas::value_types::id_or_object! {
    /// A user id, or the user as an object.
    CreatedBy(Author)
}

impl From<CommentView> for InternalComment {
    fn from(view: CommentView) -> Self {
        let comment = view.comment;
        let created_by = match view.created_by {
            Some(user) => CreatedBy::Object(user.into()),
            None => CreatedBy::Id(comment.created_by.into_string()),
        };
        Self {
            id: comment.id.into_string(),
            conversation_id: comment.conversation_id.into_string(),
            account_id: comment.account_id.into_string(),
            note_data: NoteData { text: comment.text, created_by },
            sent_at: comment.sent_at,
            created_at: comment.created_at,
            updated_at: comment.updated_at,
            conversation: view.conversation.map(Into::into),
            account: view.account.map(Into::into),
        }
    }
}

/// Read operations on messages and internal comments.
#[derive(Debug)]
pub struct MessageReads;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Messages")]
impl MessageReads {
    /// List messages
    ///
    /// With `conversationId`, lists the customer-facing messages of a conversation; with `ticketId`, only those in the time window of a
    /// ticket. The newest message comes first. At least one of the two ids is required; if both are sent, the ticket must belong to the
    /// conversation.
    #[oai(path = "/messages", method = "get", operation_id = "listMessages")]
    #[expect(clippy::too_many_arguments, reason = "one argument a documented parameter")]
    async fn list_messages(
        &self,
        request: Authorised<MessagesRead>,
        /// The conversation whose messages are listed.
        #[oai(name = "conversationId")]
        conversation_id: Query<Option<Id<ConversationId>>>,
        /// The ticket whose time window is listed: after the conversation's previous ticket closed, and until this ticket closed.
        #[oai(name = "ticketId")]
        ticket_id: Query<Option<Id<TicketId>>>,
        /// Messages per page.
        #[oai(name = "pageSize")]
        page_size: Query<MessagesPageSize>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        /// A page number that the answer repeats in `x-pagination-page`. It does not select records; `cursor` does.
        page: PageParam,
        /// Related records to add as objects: the author, the conversation or the channel account.
        expand: Query<Expand<MessageExpand>>,
    ) -> Result<Reply<Paged<Message>>, Failure<Lookup>> {
        let (conversation, ticket) = (conversation_id.0.map(|id| id.0), ticket_id.0.map(|id| id.0));
        if conversation.is_none() && ticket.is_none() {
            return Err(ApiError::field("conversationId", "or `ticketId` is required").into());
        }
        let walk = PageStep::step(&request, "listMessages", page_size.0.0, &cursor.0, &page, &format!("{conversation:?}{ticket:?}"))?;
        let messages = request
            .reads_many()
            .await?
            .messages(request.store(), conversation.as_ref(), ticket.as_ref(), walk.request(), expand.0.0)
            .await?;
        Ok(walk.reply(&request, messages))
    }

    /// List internal comments
    ///
    /// Lists the internal comments of a conversation, the newest first.
    #[oai(path = "/messages/internal-comments", method = "get", operation_id = "listInternalComments")]
    async fn list_internal_comments(
        &self,
        request: Authorised<MessagesRead>,
        /// The conversation whose comments are listed.
        #[oai(name = "conversationId")]
        conversation_id: Query<Required<Id<ConversationId>>>,
        /// Comments per page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        /// A page number that the answer repeats in `x-pagination-page`. It does not select records; `cursor` does.
        page: PageParam,
        /// Related records to return as objects: the author in `noteData.createdBy`, the conversation, the channel account.
        expand: Query<Expand<CommentExpand>>,
    ) -> Result<Reply<Paged<InternalComment>>, Failure<Lookup>> {
        let conversation = conversation_id.0.0.0;
        let walk = PageStep::step(&request, "listInternalComments", page_size.0.0, &cursor.0, &page, conversation.as_str())?;
        let comments = request.reads_many().await?.comments(request.store(), &conversation, walk.request(), expand.0.0).await?;
        Ok(walk.reply(&request, comments))
    }
}

/// Write operations on messages and internal comments.
#[derive(Debug)]
pub struct MessageWrites;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Messages")]
impl MessageWrites {
    /// Send a text message
    ///
    /// Sends a text to the contact of a conversation; in an e-mail conversation, the text is sent as a plain-text reply. The message is
    /// stored before the answer is sent, and delivered to the channel afterwards. Channel rules apply: on WhatsApp the contact must have
    /// written within the last 24 hours, on Messenger and Instagram within the last 7 days. A repeated request sends the message again,
    /// unless it repeats an `Idempotency-Key`.
    #[oai(path = "/messages", method = "post", operation_id = "sendTextMessage")]
    async fn send_text_message(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<TextInput>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let send = body.parse()?.send()?;
        let by = request.by::<(), Acknowledgement, _, _>("sendTextMessage", &key, &body);
        let outcome = request.state.service.send(&by, send).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Add an internal comment
    ///
    /// Adds an internal comment to a conversation. The customer does not see the comment.
    #[oai(path = "/messages/internal-comments", method = "post", operation_id = "addInternalComment")]
    async fn add_internal_comment(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<CommentInput>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let (conversation, text) = body.parse()?.check()?;
        let by = request.by::<(), Acknowledgement, _, _>("addInternalComment", &key, &body);
        let author = request.caller.owner.clone();
        let outcome = request.state.service.add_internal_comment(&by, conversation.into(), text, author).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }
}
