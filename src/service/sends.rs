//! Use-cases that send messages to contacts: texts, e-mails, templates.
//!
//! Transactional outbox: a message is stored with its outbox entry in one transaction. `delivery` sends the message of the entry, and
//! records the outcome with [`Service::record_send_outcome`](super::outbox_processing). A message to the web chat (the channel `widget`),
//! which is part of this server, needs no outbox entry: it counts as sent once it is stored, and its event is part of the same commit.

use serde_json::Value;

use super::{
    Error, Result, Service, WriteContext, WriteOutcome,
    conversation_threads::{ATTEMPTS, NewThread, ThreadError, channel_reference, count, thread_of},
    error::shown,
    write_transaction::{WriteTransaction, begin},
};
use crate::{
    domain::{
        contacts::is_email,
        conversations::Conversation,
        events::{Actor, EventChange},
        ids::{AccountId, ConversationId, MessageId, TemplateId, TicketId},
        inbound_messages::{Person, is_mail},
        messages::Message,
        outbound_messages::{
            self, Content, Delivery, Email, Mailbox, OutboxEntry, ReplyWindowClosed, TemplateMessage, Unsendable, accepts_at_once, mail_id,
            reply_subject, text_kind,
        },
        send_requests::{EmailContent, FilledTemplate, Send},
        stores_and_accounts::{Account, Template, WHATSAPP},
        unicode_text::unfolded,
    },
    store::queues::outbound::ThreadEmail,
};

/// A message that may begin a conversation: a new e-mail, or a template to a phone number.
enum FirstMessage<'a> {
    Mail(&'a EmailContent),
    Template { phone: &'a str, filling: &'a FilledTemplate },
}

/// Locks a conversation and its open ticket, and returns them.
async fn thread(change: &WriteTransaction<'_>, id: &ConversationId) -> Result<(Conversation, Option<TicketId>)> {
    let found = change.conversation_with_ticket(id).await?;
    found.ok_or_else(|| Error::missing("body.conversationId", "conversation", id))
}

impl Service {
    /// Sends a message to a contact.
    pub async fn send(&self, by: &WriteContext<'_, ()>, send: Send) -> Result<WriteOutcome<()>> {
        match send {
            Send::Text { conversation_id, text } => self.send_text(by, conversation_id, text).await,
            Send::EmailReply { conversation_id, email } => self.send_mail_reply(by, conversation_id, email).await,
            Send::TemplateReply { conversation_id, filling } => self.send_template_reply(by, conversation_id, filling).await,
            Send::EmailNew { account_id, email } => self.send_mail(by, account_id, email).await,
            Send::TemplateToPhone { account_id, phone_number, filling } => self.send_template(by, account_id, phone_number, filling).await,
        }
    }

    async fn send_text(&self, by: &WriteContext<'_, ()>, id: ConversationId, text: String) -> Result<WriteOutcome<()>> {
        let mut change = begin!(self, by);
        let (conversation, ticket) = thread(&change, &id).await?;
        let kind = text_kind(conversation.channel.as_str(), conversation.last_inbound_at, change.now())
            .map_err(|closed| Error::invalid("body.conversationId", format!("names {}", self.closed(closed))))?;
        let content = if is_mail(conversation.channel.as_str()) {
            let mails = change.thread_mails(&id).await?;
            let to = vec![reply_recipient(&change, &conversation, &mails).await?];
            let email = EmailContent { to, cc: vec![], bcc: vec![], subject: None, text: Some(text), html: None };
            self.build_email_reply(&change, &conversation, email, &mails).await?
        } else {
            (MessageId::from(self.clocks_and_ids().ids.fresh()), Content::Text(text))
        };
        self.store(&mut change, (conversation, ticket), kind, content).await?;
        change.finish(by, ()).await
    }

    async fn send_mail_reply(&self, by: &WriteContext<'_, ()>, id: ConversationId, email: EmailContent) -> Result<WriteOutcome<()>> {
        let mut change = begin!(self, by);
        let (conversation, ticket) = thread(&change, &id).await?;
        if !is_mail(conversation.channel.as_str()) {
            return Err(Error::invalid("body.conversationId", not_of_channel("conversation", &conversation.channel.0, "gmail or outlook")));
        }
        let mails = change.thread_mails(&id).await?;
        let content = self.build_email_reply(&change, &conversation, email, &mails).await?;
        self.store(&mut change, (conversation, ticket), None, content).await?;
        change.finish(by, ()).await
    }

    /// Sends an e-mail that begins a conversation. The contact of the conversation is the contact whose primary e-mail is the address of
    /// the first recipient, or else a new contact.
    async fn send_mail(&self, by: &WriteContext<'_, ()>, account: AccountId, email: EmailContent) -> Result<WriteOutcome<()>> {
        self.send_first(by, account, FirstMessage::Mail(&email)).await
    }

    async fn send_template_reply(
        &self,
        by: &WriteContext<'_, ()>,
        id: ConversationId,
        filling: FilledTemplate,
    ) -> Result<WriteOutcome<()>> {
        let mut change = begin!(self, by);
        let (conversation, ticket) = thread(&change, &id).await?;
        if conversation.channel.as_str() != WHATSAPP {
            return Err(Error::invalid("body.conversationId", not_of_channel("conversation", &conversation.channel.0, WHATSAPP)));
        }
        let template = template(&change, &conversation.account_id, &filling.template_id).await?;
        let content = (MessageId::from(self.clocks_and_ids().ids.fresh()), Content::Template(fill(&template, &filling)?));
        self.store(&mut change, (conversation, ticket), None, content).await?;
        change.finish(by, ()).await
    }

    /// Sends a template to a phone number that may have no conversation on the account yet.
    async fn send_template(
        &self,
        by: &WriteContext<'_, ()>,
        account: AccountId,
        phone: String,
        filling: FilledTemplate,
    ) -> Result<WriteOutcome<()>> {
        self.send_first(by, account, FirstMessage::Template { phone: &phone, filling: &filling }).await
    }

    async fn send_first(&self, by: &WriteContext<'_, ()>, account: AccountId, first: FirstMessage<'_>) -> Result<WriteOutcome<()>> {
        for _ in 0..ATTEMPTS {
            match self.try_send_first(by, &account, &first).await {
                Ok(outcome) => return Ok(outcome),
                Err(ThreadError::Raced) => {}
                Err(ThreadError::Failed(error)) => return Err(error),
            }
        }
        Err(Error::Unavailable { reason: "others are writing to this contact; try again".to_owned(), retry_after: 1 })
    }

    async fn try_send_first(
        &self,
        by: &WriteContext<'_, ()>,
        id: &AccountId,
        first: &FirstMessage<'_>,
    ) -> std::result::Result<WriteOutcome<()>, ThreadError> {
        let mut change = begin!(self, by);
        let account = change.account(id).await?.ok_or_else(|| Error::missing("body.accountId", "account", id))?;
        let channel = account.channel.as_str();
        // `thread` is a conversation with its open ticket. A new conversation has no ticket.
        let (thread, content) = match first {
            FirstMessage::Mail(email) => {
                if !is_mail(channel) {
                    return Err(Error::invalid("body.accountId", not_of_channel("account", channel, "gmail or outlook")).into());
                }
                let (id, content) = self.mail(&account, (*email).clone(), vec![], None);
                let opening = NewThread {
                    // The channel's own id of the conversation is known only after the channel has accepted the e-mail. Until then, the
                    // Message-ID is stored in its place.
                    reference_id: mail_reference(&content),
                    person: correspondents_person(&email.to),
                    email_subject: email.subject.as_deref().and_then(unfolded),
                };
                ((self.open_thread(&change, &account, opening).await?, None), (id, content))
            }
            FirstMessage::Template { phone, filling } => {
                if channel != WHATSAPP {
                    return Err(Error::invalid("body.accountId", not_of_channel("account", channel, WHATSAPP)).into());
                }
                let template = template(&change, &account.id, &filling.template_id).await?;
                let content = Content::Template(fill(&template, filling)?);
                let thread = match thread_of(&change, &account, phone).await? {
                    Some(conversation) => {
                        let ticket = change.open_ticket(&conversation.id).await?;
                        // The message goes to the phone number, even if the conversation has another reference id (the channel's id of the
                        // conversation).
                        (Conversation { reference_id: (*phone).to_owned(), ..conversation }, ticket)
                    }
                    None => {
                        let phone = (*phone).to_owned();
                        let person = Person { first_name: phone.clone(), last_name: None, email: None, phone: Some(phone.clone()) };
                        (self.open_thread(&change, &account, NewThread { reference_id: phone, person, email_subject: None }).await?, None)
                    }
                };
                (thread, (MessageId::from(self.clocks_and_ids().ids.fresh()), content))
            }
        };
        self.store(&mut change, thread, None, content).await?;
        Ok(change.finish(by, ()).await?)
    }

    /// Stores an outbound message in a conversation, which may have an open ticket. Queues the message unless its channel is part of this
    /// server.
    async fn store(
        &self,
        change: &mut WriteTransaction<'_>,
        (mut conversation, ticket_id): (Conversation, Option<TicketId>),
        kind: Option<&'static str>,
        (id, content): (MessageId, Content),
    ) -> crate::store::Result<()> {
        let now = change.now();
        let at_once = accepts_at_once(conversation.channel.as_str());
        let message = Message {
            id,
            conversation_id: conversation.id.clone(),
            account_id: conversation.account_id.clone(),
            inbound: false,
            sent_at: now,
            sort_at: now,
            // Empty texts count as absent, as in an import.
            text: content.text().filter(|text| !text.is_empty()).map(str::to_owned),
            images: None,
            kind: kind.map(str::to_owned),
            author_user_id: match change.actor() {
                Actor::User(user) => Some(user.clone()),
                _ => None,
            },
            is_sent_from_app: Some(true),
            sender: None,
            payload: content.payload().map(|payload| payload.to_string()),
            created_at: now,
            updated_at: now,
        };
        let delivery = if at_once { Delivery::Sent } else { Delivery::Pending };
        if let Some(ticket) = &ticket_id {
            change.bump_answered_ticket(ticket, now)?;
        }
        if !change.is_dry_run() {
            tracing::info!(message_id = %message.id, conversation_id = %message.conversation_id, account_id = %message.account_id, "sending a message");
        }
        change.insert_message(&message, None, Some(delivery))?;
        count(change, &mut conversation, &message).await?;
        change.inserted(&message, conversation.email_subject.as_deref());
        if at_once {
            change.note(EventChange::MessageSent { message, ticket_id });
            return Ok(());
        }
        let reference_id = channel_reference(change, &conversation).await?;
        let outbox_entry = OutboxEntry {
            store_id: change.store().clone(),
            message_id: message.id,
            conversation_id: conversation.id,
            account_id: conversation.account_id,
            channel: conversation.channel,
            reference_id,
            kind: message.kind,
            content,
            actor: change.actor().clone(),
            ticket_id,
        };
        change.dispatch(&outbox_entry)
    }

    /// Returns the error text for a conversation to which no free text can be sent at the moment. The text says why.
    pub(super) fn closed(&self, closed: ReplyWindowClosed) -> String {
        match closed {
            ReplyWindowClosed::TemplateOnly => format!(
                "a WhatsApp conversation whose contact has not written for 24 hours; {}",
                self.rules().template_operation.map_or_else(
                    || "only an approved template can be sent to it".to_owned(),
                    |operation| format!("send an approved template with {operation}")
                )
            ),
            ReplyWindowClosed::Until7Days => {
                "a conversation whose contact has not written for 7 days; its channel takes no message".to_owned()
            }
        }
    }

    /// Makes an e-mail with a new Message-ID. `references`: the Message-IDs of the thread, oldest first. `answers`: the Message-ID of the
    /// e-mail that this e-mail replies to.
    fn mail(&self, account: &Account, email: EmailContent, references: Vec<String>, answers: Option<String>) -> (MessageId, Content) {
        let id = MessageId::from(self.clocks_and_ids().ids.fresh());
        let from = Some(account.name.as_str()).filter(|name| is_email(name)).map(|email| Mailbox { email: email.to_owned(), name: None });
        let EmailContent { to, cc, bcc, subject, text, html } = email;
        let message_id = mail_id(&id, from.as_ref());
        let mail = Email { message_id, from, to, cc, bcc, subject, text, html, in_reply_to: answers, references };
        (id, Content::Email(mail))
    }

    async fn build_email_reply(
        &self,
        change: &WriteTransaction<'_>,
        thread: &Conversation,
        mut email: EmailContent,
        mails: &[ThreadEmail],
    ) -> Result<(MessageId, Content)> {
        let account = change.account(&thread.account_id).await?;
        let account = account.ok_or_else(|| Error::Internal(format!("conversation {} has no account", thread.id)))?;
        if email.subject.is_none() {
            email.subject = reply_subject(thread.email_subject.as_deref());
        }
        let mut references: Vec<String> = mails.iter().filter_map(mail_name).collect();
        // The reply refers to the contact's last message, or else to the last outbound message.
        let answered = mails.iter().filter(|mail| mail.inbound).find_map(mail_name).or_else(|| references.first().cloned());
        references.reverse();
        Ok(self.mail(&account, email, references, answered))
    }
}

fn not_of_channel(noun: &str, channel: &str, wanted: &str) -> String {
    let article = if noun.starts_with('a') { "an" } else { "a" };
    format!("names {article} {noun} of the channel `{channel}`; it must be one of {wanted}")
}

/// Returns the recipient of a reply: the last sender, or else the contact's address, or else the reference id (the channel's id of the
/// conversation) if it is an address.
async fn reply_recipient(change: &WriteTransaction<'_>, thread: &Conversation, mails: &[ThreadEmail]) -> Result<Mailbox> {
    let writer = mails.iter().find(|mail| mail.inbound).and_then(|mail| mail.sender.as_deref());
    let writer = writer.and_then(|sender| serde_json::from_str::<Value>(sender).ok()).and_then(|sender| {
        let email = sender["id"].as_str().filter(|id| is_email(id))?;
        Some(Mailbox { email: email.to_owned(), name: sender["name"].as_str().map(outbound_messages::header_text) })
    });
    if let Some(writer) = writer {
        return Ok(writer);
    }
    let contact = change.contact(&thread.contact_id).await?;
    let email = contact.and_then(|contact| contact.email).or_else(|| Some(thread.reference_id.clone()).filter(|name| is_email(name)));
    let email = email.ok_or_else(|| Error::invalid("body.conversationId", "names an e-mail conversation whose contact has no address"))?;
    Ok(Mailbox { email, name: None })
}

/// Returns the person to whom an e-mail goes. Only the first address counts.
fn correspondents_person(to: &[Mailbox]) -> Person {
    let (email, name) = to.first().map(|to| (to.email.clone(), to.name.clone())).unwrap_or_default();
    let local = email.split('@').next().unwrap_or_default().to_owned();
    let first_name = name.filter(|name| !name.trim().is_empty()).unwrap_or(local);
    Person { first_name, last_name: None, email: Some(email), phone: None }
}

fn mail_reference(content: &Content) -> String {
    match content {
        Content::Email(mail) => mail.message_id.clone(),
        Content::Text(_) | Content::Template(_) => String::new(),
    }
}

/// Returns the Message-ID of an e-mail of the thread, in angle brackets. `None` if the Message-ID is unknown or invalid.
fn mail_name(mail: &ThreadEmail) -> Option<String> {
    let payload = mail.payload.as_deref().and_then(|payload| serde_json::from_str::<Value>(payload).ok());
    let channel_name = payload.and_then(|payload| payload["email"]["messageId"].as_str().map(str::to_owned));
    let name = channel_name.or_else(|| mail.external_id.clone())?;
    let inner = name.trim().trim_start_matches('<').trim_end_matches('>');
    let right = inner.contains('@') && inner.chars().all(|c| c.is_ascii_graphic() && c != '<' && c != '>');
    right.then(|| format!("<{inner}>"))
}

/// Returns a template of this account.
async fn template(change: &WriteTransaction<'_>, account: &AccountId, id: &TemplateId) -> Result<Template> {
    let template = change.template(id).await?.filter(|template| template.account_id == *account);
    template.ok_or_else(|| Error::not_found("body.templateId", format!("no template with id `{}` on this account", shown(id))))
}

fn fill(template: &Template, filling: &FilledTemplate) -> Result<TemplateMessage> {
    outbound_messages::fill(template, filling.variables.clone()).map_err(|wrong| match wrong {
        Unsendable::Status(status) => Error::invalid(
            "body.templateId",
            format!("names a template that is {status}; APPROVED, REINSTATED and FLAGGED ones can be sent"),
        ),
        Unsendable::Named => {
            Error::invalid("body.templateId", "names a template with named placeholders, which `variables` cannot fill in")
        }
        Unsendable::BeyondBody(what) => {
            Error::invalid("body.templateId", format!("names a template with {what}, which `variables` cannot fill in"))
        }
        Unsendable::TooLong(reason) => Error::invalid("body.variables", format!("make a text that {reason}")),
        Unsendable::Variables { wanted, given } => {
            Error::invalid("body.variables", format!("must hold {wanted} values, one a placeholder of the template; it holds {given}"))
        }
    })
}
