//! Write operations that both revisions have (section 4.3).

use poem_openapi::OpenApi;

use super::{
    auth::{Authorised, ContactsWrite, ConversationsWrite, MessagesWrite, TicketsWrite},
    body::Body,
    contacts::Contact,
    error::{Change, ContactMaking, Failure, StampedChange},
    expand::{Expand, NoExpand},
    inputs::{ContactCreation, ContactFieldInput, ReadMark, TicketClosing, TicketFieldUpdate},
    params::Query,
    reply::{One, Reply},
    writing::{Acknowledgement, IdempotencyKey},
};
use crate::{
    domain::{
        contacts,
        tickets::{TicketExpand, TicketView},
    },
    revision::wire::{CommentInput, LabelsInput, TextInput, Ticket},
};

/// Writes on tickets.
#[derive(Debug)]
pub struct TicketWrites;

#[OpenApi(tag = "super::document::Tag::Tickets")]
impl TicketWrites {
    /// Update a ticket field
    ///
    /// Sets or unsets one field of a ticket. With a stale `ticketFieldsUpdatedAt` nothing is written.
    #[oai(path = "/tickets/field-values", method = "patch", operation_id = "updateTicketField")]
    async fn update_ticket_field(
        &self,
        request: Authorised<TicketsWrite>,
        body: Body<TicketFieldUpdate>,
        /// Replaces `accountId`, `conversationId`, `assigneeUserId` or `handledBy` by an object.
        expand: Query<Expand<TicketExpand>>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<One<Ticket>>, Failure<StampedChange>> {
        let update = body.parse()?;
        let by = request.by::<TicketView, Ticket, _, _>("updateTicketField", &key, &body);
        let outcome = request.api.service.update_ticket_field(&by, update.into(), expand.0.0).await?;
        Ok(Reply::written::<_, Ticket>(&request, outcome))
    }

    /// Close a ticket
    ///
    /// Closes a ticket and records what is sent with it. A ticket that is closed already keeps its `closedAt`.
    #[oai(path = "/tickets/close", method = "post", operation_id = "closeTicket")]
    async fn close_ticket(
        &self,
        request: Authorised<TicketsWrite>,
        body: Body<TicketClosing>,
        /// Replaces `accountId`, `conversationId`, `assigneeUserId` or `handledBy` by an object.
        expand: Query<Expand<TicketExpand>>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<One<Ticket>>, Failure<Change>> {
        let closing = body.parse()?.check()?;
        let by = request.by::<TicketView, Ticket, _, _>("closeTicket", &key, &body);
        let outcome = request.api.service.close_ticket(&by, closing, expand.0.0).await?;
        Ok(Reply::written::<_, Ticket>(&request, outcome))
    }
}

/// Writes on conversations.
#[derive(Debug)]
pub struct ConversationWrites;

#[OpenApi(tag = "super::document::Tag::Conversations")]
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
        let outcome = request.api.service.mark_conversation_read(&by, mark.conversation_id.into()).await?;
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
        let outcome = request.api.service.update_conversation_labels(&by, update).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }
}

/// Writes on contacts.
#[derive(Debug)]
pub struct ContactWrites;

#[OpenApi(tag = "super::document::Tag::Contacts")]
impl ContactWrites {
    /// Create a contact
    ///
    /// Creates a contact. No two contacts of a store have the same primary e-mail or phone.
    #[oai(path = "/contacts", method = "post", operation_id = "createContact")]
    async fn create_contact(
        &self,
        request: Authorised<ContactsWrite>,
        body: Body<ContactCreation>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Contact>>, Failure<ContactMaking>> {
        let new = body.parse()?.check()?;
        let by = request.by::<contacts::Contact, Contact, _, _>("createContact", &key, &body);
        let outcome = request.api.service.create_contact(&by, new).await?;
        Ok(Reply::written::<_, Contact>(&request, outcome))
    }

    /// Update a contact field
    ///
    /// Sets or unsets one custom field of a contact. With a stale `updatedAt` nothing is written.
    #[oai(path = "/contacts/field-values", method = "patch", operation_id = "updateContactField")]
    async fn update_contact_field(
        &self,
        request: Authorised<ContactsWrite>,
        body: Body<ContactFieldInput>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<StampedChange>> {
        let update = body.parse()?;
        let by = request.by::<(), Acknowledgement, _, _>("updateContactField", &key, &body);
        let outcome = request.api.service.update_contact_field(&by, update.into()).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }
}

/// Messages and the notes beside them.
#[derive(Debug)]
pub struct MessageWrites;

#[OpenApi(tag = "super::document::Tag::Messages")]
impl MessageWrites {
    /// Send a text message
    ///
    /// Sends a text to the contact of a conversation; in an e-mail conversation it goes as a plain-text reply. The message
    /// is stored before the answer, and delivered to the channel after it. Channel rules apply: on WhatsApp the contact
    /// must have written within 24 hours; on Messenger and Instagram within 7 days. A repeated request sends again, unless
    /// it repeats an `Idempotency-Key`.
    #[oai(path = "/messages", method = "post", operation_id = "sendTextMessage")]
    async fn send_text_message(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<TextInput>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let (conversation, text) = body.parse()?.check()?;
        let by = request.by::<(), Acknowledgement, _, _>("sendTextMessage", &key, &body);
        let outcome = request.api.service.send_text(&by, conversation.into(), text).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }

    /// Add an internal comment
    ///
    /// Adds a note to a conversation that does not reach the customer.
    #[oai(path = "/messages/internal-comments", method = "post", operation_id = "addInternalComment")]
    async fn add_internal_comment(
        &self,
        request: Authorised<MessagesWrite>,
        body: Body<CommentInput>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<Change>> {
        let (conversation, text) = body.parse()?.check()?;
        let by = request.by::<(), Acknowledgement, _, _>("addInternalComment", &key, &body);
        let author = request.caller.owner.clone();
        let outcome = request.api.service.add_internal_comment(&by, conversation.into(), text, author).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }
}
