//! The rows that an inbound message reads and makes, each within [`Write`].

use super::{Error, Result, import::DERIVE_TICKETS, sql::Row, write::Write};
use crate::domain::{
    contacts::Contact,
    conversations::Conversation,
    ids::{AccountId, ConversationId, MessageId, TicketId},
    messages::Message,
    outbound::Delivery,
    tickets::Ticket,
    time::Timestamp,
};

/// A message that was received before.
#[derive(Debug)]
pub struct Former {
    pub message_id: MessageId,
    pub conversation_id: ConversationId,
    pub received_at: Timestamp,
}

impl Write {
    /// Hours within which an inbound message reopens a closed ticket.
    pub async fn reopen_window_hours(&self) -> Result<Option<i64>> {
        self.first(self.sql("SELECT reopen_window_hours FROM stores WHERE id = $1"), |cells| cells.take()).await
    }

    pub async fn message_of_channel(&self, account: &AccountId, external_id: &str) -> Result<Option<Former>> {
        // SQLite takes the partial index only where its condition is spelled out.
        let mut sql = self
            .sql("SELECT id, conversation_id, created_at FROM messages WHERE store_id = $1 AND external_id IS NOT NULL AND account_id = ");
        sql.text(account.as_str()).push(" AND external_id = ").text(external_id);
        self.first(sql, |cells| Ok(Former { message_id: cells.id()?, conversation_id: cells.id()?, received_at: cells.time()? })).await
    }

    /// The conversation's ticket that was open at that time.
    pub async fn ticket_at(&self, conversation: &ConversationId, at: Timestamp) -> Result<Option<TicketId>> {
        let mut sql = self.sql("SELECT id FROM tickets WHERE store_id = $1 AND conversation_id = ");
        sql.text(conversation.as_str()).push(" AND opened_at <= ").integer(at.millis());
        sql.push(" AND (closed_at IS NULL OR closed_at >= ").integer(at.millis()).push(") ORDER BY opened_at DESC, id DESC LIMIT 1");
        self.first(sql, |cells| cells.id()).await
    }

    /// The conversation of a thread, held until the end of the transaction.
    pub async fn conversation_of_thread(&self, account: &AccountId, reference_id: &str) -> Result<Option<Conversation>> {
        let mut sql = self.sql("SELECT ");
        sql.push(Conversation::COLUMNS).push(" FROM conversations WHERE store_id = $1 AND account_id = ").text(account.as_str());
        sql.push(" AND reference_id = ").text(reference_id);
        self.hold(&mut sql);
        self.first(sql, Conversation::decode).await
    }

    /// The conversation on an account whose contact has this primary phone, the latest where there are several, held until the end
    /// of the transaction.
    pub async fn conversation_with_phone(&self, account: &AccountId, phone: &str) -> Result<Option<Conversation>> {
        let mut sql = self.sql("SELECT ");
        sql.push(Conversation::COLUMNS).push(" FROM conversations WHERE store_id = $1 AND account_id = ").text(account.as_str());
        sql.push(" AND contact_id = (SELECT id FROM contacts WHERE store_id = $1 AND phone = ").text(phone);
        sql.push(") ORDER BY sort_at DESC, id DESC LIMIT 1");
        self.hold(&mut sql);
        self.first(sql, Conversation::decode).await
    }

    /// The contact with this primary e-mail, else with this primary phone, held: it is referred to by the thread that is
    /// made for it, and to wait for it only then would be to wait with the counter of tickets in hand.
    pub async fn contact_known_by(&self, email: Option<&str>, phone: Option<&str>) -> Result<Option<Contact>> {
        for (column, value) in [("email_key", email.map(str::to_lowercase)), ("phone", phone.map(str::to_owned))] {
            let Some(value) = value else { continue };
            let mut sql = self.sql("SELECT ");
            sql.push(Contact::COLUMNS).push(" FROM contacts WHERE store_id = $1 AND ").push(column).push(" = ").text(&value);
            self.hold(&mut sql);
            if let Some(contact) = self.first(sql, Contact::decode).await? {
                return Ok(Some(contact));
            }
        }
        Ok(None)
    }

    /// A conversation without messages.
    pub async fn insert_conversation(&self, conversation: &Conversation) -> Result<()> {
        let mut sql = self.sql(
            "INSERT INTO conversations (store_id, id, channel, account_id, contact_id, display_name, reference_id, email_subject, sort_at, \
             created_at, updated_at, label_ids, label_marks, is_spam, unread_count, message_count) VALUES ($1, ",
        );
        sql.text(conversation.id.as_str()).push(", ").text(conversation.channel.as_str());
        sql.push(", ").text(conversation.account_id.as_str()).push(", ").text(conversation.contact_id.as_str());
        sql.push(", ").text(&conversation.display_name).push(", ").text(&conversation.reference_id);
        sql.push(", ").optional_text(conversation.email_subject.as_deref());
        for at in [conversation.sort_at, conversation.created_at, conversation.updated_at] {
            sql.push(", ").integer(at.millis());
        }
        sql.push(", '[]', 0, FALSE, 0, 0)");
        self.run(sql).await?;
        Ok(())
    }

    /// A message. `delivery`: of one that is sent here.
    pub fn insert_message(&self, message: &Message, external_id: Option<&str>, delivery: Option<Delivery>) -> Result<()> {
        let images = message.images.as_ref().map(serde_json::to_string).transpose().map_err(|error| Error::Damaged(error.to_string()))?;
        let mut sql = self.sql(
            "INSERT INTO messages (store_id, id, conversation_id, account_id, inbound, is_sent_from_app, sent_at, created_at, updated_at, \
             text, images, sender, external_id, kind, payload, delivery) VALUES ($1, ",
        );
        sql.text(message.id.as_str()).push(", ").text(message.conversation_id.as_str()).push(", ").text(message.account_id.as_str());
        sql.push(", ").flag(message.inbound).push(", ").optional_flag(message.is_sent_from_app);
        for at in [message.sent_at, message.created_at, message.updated_at] {
            sql.push(", ").integer(at.millis());
        }
        for text in [
            message.text.as_deref(),
            images.as_deref(),
            message.sender.as_deref(),
            external_id,
            message.kind.as_deref(),
            message.payload.as_deref(),
            delivery.map(Delivery::as_str),
        ] {
            sql.push(", ").optional_text(text);
        }
        sql.push(")");
        self.run_along(sql)
    }

    /// The newest message of a conversation.
    pub async fn newest_message(&self, conversation: &ConversationId) -> Result<Option<Message>> {
        let mut sql = self.sql("SELECT ");
        sql.push(Message::COLUMNS).push(" FROM messages WHERE store_id = $1 AND conversation_id = ").text(conversation.as_str());
        sql.push(" ORDER BY sent_at DESC, id DESC LIMIT 1");
        self.first(sql, Message::decode).await
    }

    /// Writes what follows from the messages of a conversation, its unread count and stamp.
    pub fn save_counters(&self, conversation: &Conversation) -> Result<()> {
        let last = conversation.last_message.as_ref();
        let mut sql = self.sql("UPDATE conversations SET unread_count = ");
        sql.integer(conversation.unread_count).push(", message_count = ").integer(conversation.message_count);
        sql.push(", last_inbound_at = ").optional_integer(conversation.last_inbound_at.map(|at| at.millis()));
        sql.push(", last_message_at = ").optional_integer(last.map(|last| last.sent_at.millis()));
        sql.push(", last_message_snippet = ").optional_text(last.map(|last| last.snippet.as_str()));
        sql.push(", last_message_inbound = ").optional_flag(last.map(|last| last.sent_by_recipient));
        sql.push(", sort_at = ").integer(conversation.sort_at.millis()).push(", updated_at = ").integer(conversation.updated_at.millis());
        sql.push(" WHERE store_id = $1 AND id = ").text(conversation.id.as_str());
        self.run_along(sql)
    }

    /// The open ticket of a conversation, else its latest one, held until the end of the transaction.
    pub async fn latest_ticket(&self, conversation: &ConversationId) -> Result<Option<Ticket>> {
        for condition in [" AND is_open = TRUE", " ORDER BY opened_at DESC, id DESC LIMIT 1"] {
            let mut sql = self.sql("SELECT ");
            sql.push(Ticket::COLUMNS).push(" FROM tickets WHERE store_id = $1 AND conversation_id = ").text(conversation.as_str());
            sql.push(condition);
            self.hold(&mut sql);
            if let Some(ticket) = self.first(sql, Ticket::decode).await? {
                return Ok(Some(ticket));
            }
        }
        Ok(None)
    }

    /// The next number of a ticket. Others wait for the end of this transaction, so that no number is left out.
    pub async fn next_ticket_number(&self) -> Result<String> {
        let sql = self.sql(
            "INSERT INTO counters (store_id, name, value) VALUES ($1, 'ticket_number', 1) ON CONFLICT (store_id, name) DO UPDATE \
             SET value = counters.value + 1 RETURNING value",
        );
        let value: Option<i64> = self.first(sql, |cells| cells.take()).await?;
        value.map(|value| value.to_string()).ok_or_else(|| Error::Damaged("the counter of tickets".to_owned()))
    }

    /// An open ticket that nobody has.
    pub async fn insert_ticket(&self, ticket: &Ticket) -> Result<()> {
        let mut sql = self.sql(
            "INSERT INTO tickets (store_id, id, ticket_number, channel, contact_id, account_id, conversation_id, ticket_fields, opened_at, \
             sort_at, created_at, updated_at, is_open, is_spam, is_follow_up, field_marks, text_marks, label_marks) VALUES ($1, ",
        );
        sql.text(ticket.id.as_str()).push(", ").text(&ticket.number).push(", ").text(ticket.channel.as_str());
        sql.push(", ").text(ticket.contact_id.as_str()).push(", ").text(ticket.account_id.as_str());
        sql.push(", ").text(ticket.conversation_id.as_str()).push(", ").text(&ticket.fields);
        for at in [ticket.opened_at, ticket.sort_at, ticket.created_at, ticket.updated_at] {
            sql.push(", ").integer(at.millis());
        }
        sql.push(", TRUE, FALSE, ").flag(ticket.is_follow_up);
        sql.push(", 0, 0, (SELECT label_marks FROM conversations WHERE store_id = $1 AND id = ")
            .text(ticket.conversation_id.as_str())
            .push("))");
        self.run(sql).await?;
        Ok(())
    }

    /// Derives what follows from a ticket's messages; the ticket as it is then.
    pub async fn ticket_got_message(&self, id: &TicketId) -> Result<Option<Ticket>> {
        let mut sql = self.sql(DERIVE_TICKETS);
        sql.push(" WHERE store_id = $1 AND id = ").text(id.as_str());
        self.run(sql).await?;
        self.ticket(id).await
    }
    /// Derives the order of the closed tickets whose windows a message may lie in: it was sent before they closed.
    pub async fn closed_tickets_got_message(&self, conversation: &ConversationId, sent_at: Timestamp) -> Result<()> {
        let mut sql = self.sql(DERIVE_TICKETS);
        sql.push(" WHERE store_id = $1 AND conversation_id = ").text(conversation.as_str());
        sql.push(" AND is_open = FALSE AND closed_at >= ").integer(sent_at.millis());
        // A later message decides where there is one; without any the ticket stands where it opened.
        sql.push(" AND (sort_at < ").integer(sent_at.millis()).push(" OR sort_at = opened_at)");
        self.run(sql).await?;
        Ok(())
    }
}
