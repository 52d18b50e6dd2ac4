//! Inbound messages, and the matching of their sender to a contact (decisions, section 7). Pure.

use super::{
    contacts::{is_e164, is_email},
    ids::{AccountId, ConversationId, MessageId, TicketId},
    store::WHATSAPP,
    time::Timestamp,
};

/// The limit of characters in a channel's id of a thread or a message: the id is indexed.
pub const MAX_NAME_CHARS: usize = 512;

/// Whether a text can be an external id: printable characters, not all blank, at most `max` of them.
pub fn is_name(text: &str, max: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= max && !text.chars().any(char::is_control)
}

/// An inbound message as a channel delivers it.
#[derive(Clone, Debug)]
pub struct Inbound {
    pub account_id: AccountId,
    /// The channel's id of the thread.
    pub reference_id: String,
    /// The channel's id of the message, by which repeated deliveries are detected.
    pub external_id: String,
    pub sender_id: String,
    pub sender_name: Option<String>,
    pub text: Option<String>,
    pub images: Option<Vec<String>>,
    /// Absent: the time of receipt.
    pub sent_at: Option<Timestamp>,
    pub email_subject: Option<String>,
    pub contact: Option<InboundContact>,
}

/// The channel's data about the sender.
#[derive(Clone, Debug)]
pub struct InboundContact {
    pub first_name: String,
    pub last_name: Option<String>,
    pub email: Option<String>,
    pub phone: Option<String>,
}

/// The result of receiving a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub message_id: MessageId,
    pub conversation_id: ConversationId,
    pub ticket_id: Option<TicketId>,
    /// The message had been received before; nothing changed.
    pub duplicate: bool,
}

/// Channels whose threads have a subject and whose references may be addresses.
const MAIL: [&str; 2] = ["gmail", "outlook"];

pub fn is_mail(channel: &str) -> bool {
    MAIL.contains(&channel)
}

/// The identifying properties of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub first_name: String,
    pub last_name: Option<String>,
    pub email: Option<String>,
    pub phone: Option<String>,
}

impl Inbound {
    /// The sender of the message. The thread's reference is the phone number on WhatsApp, and may be the address of an e-mail.
    pub fn person(&self, channel: &str) -> Person {
        let told = self.contact.as_ref();
        let reference = || Some(self.reference_id.clone());
        let email = told.and_then(|contact| contact.email.clone());
        let email = email.or_else(|| reference().filter(|text| is_mail(channel) && is_email(text)));
        let phone = told.and_then(|contact| contact.phone.clone());
        let phone = phone.or_else(|| reference().filter(|text| channel == WHATSAPP && is_e164(text)));
        let first_name = told
            .map(|contact| contact.first_name.clone())
            .or_else(|| self.sender_name.clone().filter(|name| !name.trim().is_empty()))
            .or_else(|| email.as_deref().and_then(|email| email.split('@').next()).map(str::to_owned))
            .or_else(|| phone.clone())
            // A contact must have a name. Channels normally provide one of these.
            .unwrap_or_else(|| self.sender_id.clone());
        Person { first_name, last_name: told.and_then(|contact| contact.last_name.clone()), email, phone }
    }
}

impl Person {
    pub fn full_name(&self) -> String {
        match &self.last_name {
            Some(last) => format!("{} {last}", self.first_name),
            None => self.first_name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_gets_the_best_known_name() {
        let inbound = |reference: &str, name: Option<&str>, contact| Inbound {
            account_id: "a".into(),
            reference_id: reference.to_owned(),
            external_id: "x".to_owned(),
            sender_id: "u1".to_owned(),
            sender_name: name.map(str::to_owned),
            text: None,
            images: None,
            sent_at: None,
            email_subject: None,
            contact,
        };
        let told = InboundContact { first_name: "Nok".to_owned(), last_name: Some("S".to_owned()), email: None, phone: None };
        let person = inbound("+661", Some("Other"), Some(told)).person("whatsapp");
        assert_eq!((person.full_name().as_str(), person.phone.as_deref()), ("Nok S", Some("+661")));
        for (reference, name, channel, first) in [
            ("+661", Some("Mali"), "whatsapp", "Mali"),
            ("+661", Some(" "), "whatsapp", "+661"),
            ("mali@example.com", None, "gmail", "mali"),
            ("mali@example.com", None, "line", "u1"),
            ("Not a mail@@ <x>", None, "gmail", "u1"),
            ("<CAF=1@mail.example.com>", None, "gmail", "u1"),
            ("<mali@example.com>", None, "gmail", "u1"),
            ("+9991", None, "whatsapp", "u1"),
        ] {
            assert_eq!(inbound(reference, name, None).person(channel).full_name(), first);
        }
    }
}
