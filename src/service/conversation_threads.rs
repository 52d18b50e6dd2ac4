//! Conversation threads. A thread is a conversation as its channel knows it; the channel's id of a thread is `reference_id`. This module
//! finds or creates the conversation of a message, and updates the conversation's counters, for messages in both directions.

use super::{Error, Service, write_transaction::WriteTransaction};
use crate::{
    domain::{
        contacts::Contact,
        conversations::{Conversation, LastMessage, SNIPPET_CHARS},
        ids::{ContactId, ConversationId},
        inbound_messages::{Person, is_mail, thread_name},
        messages::Message,
        phones,
        stores_and_accounts::{Account, WHATSAPP},
        unicode_text::snippet,
    },
    store::{self, transaction::store_transaction::Changed},
};

/// The maximum number of attempts to store a message. An attempt is repeated if a concurrent transaction creates the conversation, contact
/// or ticket first.
pub(super) const ATTEMPTS: usize = 8;

/// Why an attempt to store a message ended without a result.
pub(super) enum ThreadError {
    /// Another transaction created the same row first.
    Raced,
    Failed(Error),
}

impl From<store::Error> for ThreadError {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unique(_) => Self::Raced,
            other => Self::Failed(other.into()),
        }
    }
}

impl From<Error> for ThreadError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The properties of a new thread.
pub(super) struct NewThread {
    pub reference_id: String,
    pub person: Person,
    pub email_subject: Option<String>,
}

impl Service {
    /// Creates the conversation for a new thread of a channel. The contact of the conversation is the stored contact with the e-mail
    /// address or the phone number of `opening.person`. If there is no such contact, creates one.
    pub(super) async fn open_thread(
        &self,
        change: &WriteTransaction<'_>,
        account: &Account,
        opening: NewThread,
    ) -> store::Result<Conversation> {
        let NewThread { reference_id, person, email_subject } = opening;
        let contact = match change.contact_known_by(person.email.as_deref(), person.phone.as_deref()).await? {
            Some(contact) => contact,
            None => {
                let contact = self.new_contact(change, person);
                change.insert_contact(&contact).await?;
                change.changed(Changed::Contact(&contact.id));
                contact
            }
        };
        // The time is read after the statements above, which may wait for the lock of the contact. A time from before this wait would be
        // too early.
        let now = change.now();
        let conversation = Conversation {
            id: ConversationId::from(self.clocks_and_ids().ids.fresh()),
            channel: account.channel.clone(),
            account_id: account.id.clone(),
            contact_id: contact.id,
            display_name: contact.full_name,
            reference_id,
            label_ids: Vec::new(),
            is_spam: false,
            unread_count: 0,
            message_count: 0,
            email_subject: email_subject.filter(|_| is_mail(account.channel.as_str())),
            last_inbound_at: None,
            last_message: None,
            sort_at: now,
            created_at: now,
            updated_at: now,
        };
        change.insert_conversation(&conversation).await?;
        Ok(conversation)
    }

    /// Makes a new contact from the known properties of a person. Does not store it.
    pub(super) fn new_contact(&self, change: &WriteTransaction<'_>, person: Person) -> Contact {
        Contact {
            id: ContactId::from(self.clocks_and_ids().ids.fresh()),
            full_name: person.full_name(),
            first_name: person.first_name,
            last_name: person.last_name,
            email: person.email,
            phone: person.phone,
            secondary_phones: None,
            secondary_emails: None,
            addresses: None,
            note: None,
            custom_fields: None,
            custom_fields_updated_at: None,
            created_at: change.now(),
            updated_at: change.now(),
        }
    }
}

/// Finds the conversation of a channel's thread, and locks it. A WhatsApp thread is identified by the phone number. Its conversation is
/// also found by other spellings of the number and by the contact's phone, since an import may have given the conversation another
/// `reference_id`.
pub(super) async fn thread_of(change: &WriteTransaction<'_>, account: &Account, reference_id: &str) -> store::Result<Option<Conversation>> {
    let channel = account.channel.as_str();
    let Some(name) = thread_name(channel, reference_id).filter(|_| channel == WHATSAPP) else {
        return change.conversation_of_thread(&account.id, reference_id, &[]).await;
    };
    let mut former = phones::former_names(&name);
    former.push(reference_id.to_owned());
    match change.conversation_of_thread(&account.id, &name, &former).await? {
        Some(found) => Ok(Some(found)),
        None => change.conversation_with_phone(&account.id, &name).await,
    }
}

/// Returns the channel's id of a thread: on WhatsApp the phone number, even if an import gave the conversation another `reference_id`.
pub(super) async fn channel_reference(change: &WriteTransaction<'_>, conversation: &Conversation) -> store::Result<String> {
    let known = &conversation.reference_id;
    if let Some(name) = thread_name(conversation.channel.as_str(), known) {
        return Ok(name);
    }
    let contact = change.contact(&conversation.contact_id).await?;
    Ok(contact.and_then(|contact| contact.phone).unwrap_or_else(|| known.clone()))
}

/// Adds a new message to the counters of its conversation. If the message is the newest of the conversation, makes it the last message.
pub(super) async fn count(change: &WriteTransaction<'_>, conversation: &mut Conversation, message: &Message) -> store::Result<()> {
    conversation.message_count += 1;
    if message.inbound {
        conversation.unread_count += 1;
        conversation.last_inbound_at = conversation.last_inbound_at.max(Some(message.sort_at));
    }
    conversation.updated_at = change.now().max(conversation.updated_at);
    let newest = match conversation.last_message {
        Some(_) if conversation.sort_at >= message.sort_at => {
            change.newest_message(&conversation.id).await?.is_some_and(|newest| newest.id == message.id)
        }
        _ => true,
    };
    if newest {
        conversation.sort_at = message.sort_at;
        conversation.last_message = Some(LastMessage {
            snippet: snippet(message.text.as_deref().unwrap_or_default(), SNIPPET_CHARS),
            sent_by_recipient: message.inbound,
            sent_at: message.sent_at,
        });
    }
    change.save_counters(conversation)
}
