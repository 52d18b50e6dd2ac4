//! Inbound messages (messages from a contact): normalises their properties, and finds the name, e-mail address and phone number of their
//! sender.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    contacts::is_email,
    ids::{AccountId, ConversationId, MessageId, TicketId},
    phones,
    stores_and_accounts::WHATSAPP,
    text_byte_limit::too_long,
    time::Timestamp,
    unicode_text::unfolded,
};

/// The maximum number of characters in an id that a channel gives to a thread, a message or a sender. A much longer id would not fit into a
/// database index.
pub const MAX_CHANNEL_ID_CHARS: usize = 512;

/// The error text for a `referenceId` (the id that a channel gives to a thread) that is not valid on WhatsApp.
pub const NO_PHONE: &str = "must be a phone number on WhatsApp, such as +66800000001, 66800000001 or 66800000001@s.whatsapp.net";

/// Returns the canonical form of `reference_id`, the id that the channel gives to a thread: on WhatsApp the phone number in E.164, on other
/// channels the text unchanged. `None`: the channel is WhatsApp, and the text is not a phone number.
pub fn thread_name(channel: &str, reference_id: &str) -> Option<String> {
    if channel == WHATSAPP { phones::on_whatsapp(reference_id) } else { Some(reference_id.to_owned()) }
}

/// An inbound message as a channel delivers it.
#[derive(Clone, Debug)]
pub struct Inbound {
    pub account_id: AccountId,
    /// The id that the channel gives to the thread.
    pub reference_id: String,
    /// The id that the channel gives to the message. A repeated delivery of the message has the same id.
    pub external_id: String,
    pub sender_id: String,
    pub sender_name: Option<String>,
    pub text: Option<String>,
    pub images: Option<Vec<String>>,
    /// When the message was sent. Absent: the time of receipt is used.
    pub sent_at: Option<Timestamp>,
    pub email_subject: Option<String>,
    pub contact: Option<InboundContact>,
    /// The names of the optional properties that were sent with a value that is not a string.
    pub not_texts: Vec<&'static str>,
}

/// An optional property of an inbound message (such as the sender's name) as it was sent: a string, or an unusable value.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RawProperty(pub Value);

impl RawProperty {
    /// Returns the property as a text; `None` for `null`. A value of another type is left out, and the name of its property (`member`) is
    /// added to `not_texts`.
    pub fn text(detail: Option<Self>, member: &'static str, not_texts: &mut Vec<&'static str>) -> Option<String> {
        match detail?.0 {
            Value::String(text) => Some(text),
            Value::Null => None,
            _ => {
                not_texts.push(member);
                None
            }
        }
    }
}

/// The channel's data about the sender.
#[derive(Clone, Debug, Default)]
pub struct InboundContact {
    pub first_name: Option<String>,
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
    /// Whether the message had been received before. If so, the repeated delivery changed nothing.
    pub duplicate: bool,
    /// The properties that were left out of the message.
    pub ignored: Vec<Ignored>,
}

/// An optional property with an invalid value: the message was accepted without this property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    pub member: &'static str,
    pub reason: String,
}

/// The e-mail channels. Their threads have a subject, and the `reference_id` of a thread may be an e-mail address.
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
    /// Normalises the sender's details and the subject. Removes each property with an invalid value, and returns the names of these
    /// properties with the reasons. The message itself is never refused because of these properties: channels do not send a refused message
    /// again, so it would be lost.
    pub fn normalise_details(&mut self, channel: &str) -> Vec<Ignored> {
        let not_text = |member| Ignored { member, reason: "must be a string".to_owned() };
        let mut ignored: Vec<Ignored> = std::mem::take(&mut self.not_texts).into_iter().map(not_text).collect();
        let mut keep = |member: &'static str, value: &mut Option<String>, form: &dyn Fn(&str) -> Result<String, &'static str>| {
            let Some(text) = value.take() else { return };
            let kept = match too_long(text.len()) {
                Some(reason) => Err(reason),
                None if text.contains('\0') => Err("must not contain the character U+0000".to_owned()),
                None => form(&text).map_err(str::to_owned),
            };
            match kept {
                Ok(kept) => *value = Some(kept),
                Err(reason) => ignored.push(Ignored { member, reason }),
            }
        };
        let line = |text: &str| unfolded(text).ok_or("must not be blank");
        let address = |text: &str| Some(text.trim().to_owned()).filter(|text| is_email(text)).ok_or("is not an e-mail address");
        let phone = |text: &str| {
            let phone = if channel == WHATSAPP { phones::on_whatsapp(text) } else { phones::international(text) };
            phone.ok_or("must be a phone number in E.164, such as +66800000001")
        };
        keep("sender.name", &mut self.sender_name, &line);
        // A blank subject counts as absent and is not reported.
        self.email_subject = self.email_subject.take().filter(|subject| !subject.trim().is_empty());
        keep("emailSubject", &mut self.email_subject, &line);
        if let Some(contact) = &mut self.contact {
            keep("contact.firstName", &mut contact.first_name, &line);
            keep("contact.lastName", &mut contact.last_name, &line);
            keep("contact.email", &mut contact.email, &address);
            keep("contact.phone", &mut contact.phone, &phone);
        }
        ignored
    }

    /// Returns the sender of the message. If `contact` lacks the phone number or the e-mail address, it is taken from `reference_id`: on
    /// WhatsApp `reference_id` is the sender's phone number, and on an e-mail channel it may be the sender's address.
    pub fn person(&self, channel: &str) -> Person {
        let contact = self.contact.as_ref();
        let reference = || thread_name(channel, &self.reference_id);
        let email = contact.and_then(|contact| contact.email.clone());
        let email = email.or_else(|| reference().filter(|text| is_mail(channel) && is_email(text)));
        let phone = contact.and_then(|contact| contact.phone.clone());
        let phone = phone.or_else(|| reference().filter(|_| channel == WHATSAPP));
        let first = contact.and_then(|contact| contact.first_name.clone());
        // A last name without a first name is used as the first name, unless the sender has a display name.
        let (last, only) = contact.and_then(|contact| contact.last_name.clone()).map_or((None, None), |last| match &first {
            Some(_) => (Some(last), None),
            None => (None, Some(last)),
        });
        let first_name = first
            .or_else(|| self.sender_name.clone())
            .or(only)
            .or_else(|| email.as_deref().and_then(|email| email.split('@').next()).map(str::to_owned))
            .or_else(|| phone.clone())
            // A contact must have a name. If the channel provides none of the details above, the name is the sender's id.
            .unwrap_or_else(|| self.sender_id.clone());
        Person { first_name, last_name: last, email, phone }
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
            not_texts: vec![],
        };
        let got = |first: Option<&str>| InboundContact {
            first_name: first.map(str::to_owned),
            last_name: Some("S".to_owned()),
            ..InboundContact::default()
        };
        let person = inbound("+661", Some("Other"), Some(got(Some("Nok")))).person("whatsapp");
        assert_eq!((person.full_name().as_str(), person.phone.as_deref()), ("Nok S", Some("+661")));
        assert_eq!(inbound("t", Some("Other"), Some(got(None))).person("line").full_name(), "Other");
        assert_eq!(inbound("t", None, Some(got(None))).person("line").full_name(), "S");
        for (reference, name, channel, first) in [
            ("+661", Some("Mali"), "whatsapp", "Mali"),
            ("+661", None, "whatsapp", "+661"),
            ("mali@example.com", None, "gmail", "mali"),
            ("mali@example.com", None, "line", "u1"),
            ("Not a mail@@ <x>", None, "gmail", "u1"),
            ("<CAF=1@mail.example.com>", None, "gmail", "u1"),
            ("<mali@example.com>", None, "gmail", "u1"),
            ("+9991", None, "whatsapp", "u1"),
            ("66812345678:3@s.whatsapp.net", None, "whatsapp", "+66812345678"),
            ("66812345678", None, "line", "u1"),
        ] {
            assert_eq!(inbound(reference, name, None).person(channel).full_name(), first);
        }
    }

    #[test]
    fn invalid_sender_details_of_a_message_are_dropped_and_reported() {
        let mut inbound = Inbound {
            account_id: "a".into(),
            reference_id: "t".to_owned(),
            external_id: "x".to_owned(),
            sender_id: "u".to_owned(),
            sender_name: Some(" Mali\r\n Sri".to_owned()),
            text: None,
            images: None,
            sent_at: None,
            email_subject: Some(" \r\n".to_owned()),
            contact: Some(InboundContact {
                first_name: Some("\t".to_owned()),
                last_name: Some("a\0b".to_owned()),
                email: Some("Mia <mia@example.com>".to_owned()),
                phone: Some("66812345678".to_owned()),
            }),
            not_texts: vec![],
        };
        let mut on_whatsapp = inbound.clone();
        let members = |ignored: &[Ignored]| ignored.iter().map(|ignored| ignored.member).collect::<Vec<_>>();
        let got = inbound.normalise_details("line");
        assert_eq!(members(&got), ["contact.firstName", "contact.lastName", "contact.email", "contact.phone"]);
        assert_eq!((inbound.sender_name.as_deref(), inbound.email_subject.as_deref()), (Some(" Mali Sri"), None));
        assert_eq!(members(&inbound.normalise_details("line")), [""; 0]);
        assert_eq!(members(&on_whatsapp.normalise_details("whatsapp")), ["contact.firstName", "contact.lastName", "contact.email"]);
        assert_eq!(on_whatsapp.contact.and_then(|contact| contact.phone).as_deref(), Some("+66812345678"));
        inbound.sender_name = Some("x".repeat(65 * 1024));
        inbound.contact = Some(InboundContact {
            email: Some(" mia@example.com ".to_owned()),
            phone: Some("+66 81-234-5678".to_owned()),
            ..InboundContact::default()
        });
        assert_eq!(members(&inbound.normalise_details("line")), ["sender.name"]);
        let contact = inbound.contact.unwrap_or_default();
        assert_eq!((contact.email.as_deref(), contact.phone.as_deref()), (Some("mia@example.com"), Some("+66812345678")));
    }
}
