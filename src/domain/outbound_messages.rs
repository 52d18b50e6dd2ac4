//! Outbound messages (API contract, section 4.3): their content, their entries in the outbox (the queue of messages to deliver), their
//! reply windows and their retry schedule. A reply window is the time after a contact's last message in which the channel accepts free
//! text.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    events::Actor,
    ids::{AccountId, ConversationId, MessageId, StoreId, TemplateId, TicketId},
    retry_backoff,
    stores_and_accounts::{Channel, NAMED, Template, WHATSAPP},
    templates::placeholders,
    text_byte_limit::too_long,
    time::Timestamp,
};

/// The outbox entry of a message, as a connector (channel adapter) gets it. The entry is stored until the channel accepts the message. If
/// delivery is given up, the entry is kept for a limited time, so that a user can retry the delivery (`FAILED_KEPT_MILLIS` in
/// `undelivered_messages`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxEntry {
    pub store_id: StoreId,
    /// The id of the message. It is the same in every attempt to send the message, so a channel can use it as the idempotency key.
    pub message_id: MessageId,
    pub conversation_id: ConversationId,
    pub account_id: AccountId,
    pub channel: Channel,
    /// The id that the channel gives to the thread.
    pub reference_id: String,
    /// The kind of the message, such as [`HUMAN_AGENT`], for channels that need it.
    pub kind: Option<String>,
    pub content: Content,
    /// Who sent the message, such as a user or an API key.
    pub actor: Actor,
    /// The ticket that was open at the time of sending.
    pub ticket_id: Option<TicketId>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    Text(String),
    Email(Email),
    Template(TemplateMessage),
}

/// An e-mail address with its display name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mailbox {
    pub email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An e-mail with the headers that assign it to a thread. Only `text` and `html` may contain control characters: in another property, a
/// line break could inject a header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Email {
    pub message_id: String,
    pub from: Option<Mailbox>,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
    pub subject: Option<String>,
    pub text: Option<String>,
    pub html: Option<String>,
    /// The Message-ID of the message to which this e-mail replies.
    pub in_reply_to: Option<String>,
    /// The Message-IDs of the thread's messages, oldest first.
    pub references: Vec<String>,
}

/// A template with its placeholders filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateMessage {
    pub id: TemplateId,
    pub name: String,
    pub language: String,
    /// The values of the placeholders, in the order of the placeholders.
    pub variables: Vec<String>,
    /// The body as the contact sees it.
    pub text: String,
}

impl Content {
    /// Returns the text of the message; `None` if the text is absent or empty.
    pub fn text(&self) -> Option<&str> {
        let text = match self {
            Self::Text(text) => Some(text.as_str()),
            Self::Email(mail) => mail.text.as_deref(),
            Self::Template(template) => Some(template.text.as_str()),
        };
        text.filter(|text| !text.is_empty())
    }

    /// Returns the value of the API property `payload` for the message. `None` for a plain text, which needs no payload.
    pub fn payload(&self) -> Option<Value> {
        let (kind, name, inner) = match self {
            Self::Text(_) => return None,
            Self::Email(mail) => ("email", "email", mail.payload()),
            Self::Template(template) => (
                "template",
                "template",
                json!({ "id": template.id, "name": template.name, "language": template.language, "variables": template.variables }),
            ),
        };
        let mut payload = json!({ "type": kind, name: inner });
        if let Some(text) = self.text() {
            payload["text"] = text.into();
        }
        Some(payload)
    }
}

impl Email {
    fn payload(&self) -> Value {
        let mut payload = json!({ "messageId": self.message_id, "to": self.to });
        for (name, list) in [("cc", &self.cc), ("bcc", &self.bcc)] {
            if !list.is_empty() {
                payload[name] = json!(list);
            }
        }
        for (name, text) in [("subject", &self.subject), ("html", &self.html)] {
            if let Some(text) = text {
                payload[name] = json!(text);
            }
        }
        if let Some(from) = &self.from {
            payload["from"] = json!(from);
        }
        payload
    }
}

/// A domain that cannot exist (RFC 2606), for the Message-IDs of an account without an e-mail address.
const NO_DOMAIN: &str = "counterpart.invalid";

/// Returns the Message-ID of an outbound e-mail.
pub fn mail_id(message: &MessageId, from: Option<&Mailbox>) -> String {
    let domain = from.and_then(|from| from.email.rsplit_once('@')).map_or(NO_DOMAIN, |(_, domain)| domain);
    format!("<{message}@{domain}>")
}

/// Makes an untrusted text safe for a mail header: replaces each control character by a space.
pub fn header_text(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the default subject of a reply. `thread` is the subject of the thread.
pub fn reply_subject(thread: Option<&str>) -> Option<String> {
    let thread = header_text(thread?);
    let answers_already = thread.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    Some(if answers_already { thread } else { format!("Re: {thread}") })
}

/// The maximum number of Message-IDs in the header `References` of a reply. It limits the length of the header.
pub const MAX_REFERENCES: usize = 20;

/// The delivery state of an outbound message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The message is queued for its first attempt or for a retry.
    Pending,
    /// The channel accepted the message.
    Sent,
    /// Delivery of the message was given up.
    Failed,
}

impl Delivery {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }

    /// Parses a stored delivery state.
    pub fn of(stored: &str) -> Option<Self> {
        [Self::Pending, Self::Sent, Self::Failed].into_iter().find(|state| state.as_str() == stored)
    }
}

/// The failure reason of a message whose account has no connector (channel adapter).
pub const NO_CONNECTOR: &str = "no_connector";

/// Whether a channel is part of this server: the web chat (`widget`). A message to such a channel counts as delivered once the message is
/// stored.
pub fn accepts_at_once(channel: &str) -> bool {
    channel == "widget"
}

/// Backoff schedule: the pause in milliseconds after each failed attempt. The attempt after the last pause is the last attempt.
const PAUSES: [i64; 6] = [1_000, 5_000, 30_000, 120_000, 600_000, 1_800_000];

/// Returns the time of the next attempt after `attempts` attempts, the last of which ended at `ended`; `None` at the end of the schedule.
/// `asked` is the pause in milliseconds that the channel asked for. `jitter`, between 0 and 1, makes a pause of the schedule up to a fifth
/// shorter or longer.
pub fn next_attempt(attempts: i64, ended: Timestamp, asked: Option<i64>, jitter: f64) -> Option<Timestamp> {
    retry_backoff::next_attempt(&PAUSES, attempts, ended, asked, jitter)
}

const HOUR: i64 = 60 * 60 * 1000;
const DAY: i64 = 24 * HOUR;

/// Channels with a reply window of 7 days for messages that a human writes, and of 24 hours for other messages.
const MESSENGERS: [&str; 2] = ["facebook", "instagram"];

/// The kind of a message written by a human, for channels with a longer reply window for such messages.
pub const HUMAN_AGENT: &str = "human_agent";

/// Why no free text can be sent in a conversation now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyWindowClosed {
    /// WhatsApp: the contact has sent no message in the last 24 hours, so only a template may be sent.
    TemplateOnly,
    /// Messenger and Instagram: the contact has sent no message in the last 7 days.
    Until7Days,
}

/// Checks the reply window: whether free text is permitted now, given the channel and the time of the contact's last message. Returns the
/// kind that the message must have, if the channel requires one.
pub fn text_kind(channel: &str, last_inbound: Option<Timestamp>, now: Timestamp) -> Result<Option<&'static str>, ReplyWindowClosed> {
    let age = last_inbound.map(|at| now.millis().saturating_sub(at.millis()));
    let within = |limit: i64| age.is_some_and(|age| age <= limit);
    if channel == WHATSAPP {
        return if within(DAY) { Ok(None) } else { Err(ReplyWindowClosed::TemplateOnly) };
    }
    if !MESSENGERS.contains(&channel) || within(DAY) {
        return Ok(None);
    }
    if within(7 * DAY) { Ok(Some(HUMAN_AGENT)) } else { Err(ReplyWindowClosed::Until7Days) }
}

/// Template statuses that permit sending.
const SENDABLE: [&str; 3] = ["APPROVED", "REINSTATED", "FLAGGED"];

/// Why a template cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsendable {
    Status(String),
    Named,
    /// The template needs a value in another part than its body, such as an image in its header. Only placeholders in the body can be
    /// filled in. Contains a description of that value.
    BeyondBody(String),
    /// The filled-in text is too long. Contains the reason.
    TooLong(String),
    Variables {
        wanted: usize,
        given: usize,
    },
}

/// Fills in the numbered placeholders of a template. Returns an error if the template cannot be sent.
pub fn fill(template: &Template, variables: Vec<String>) -> Result<TemplateMessage, Unsendable> {
    if !SENDABLE.contains(&template.status.as_str()) {
        return Err(Unsendable::Status(template.status.clone()));
    }
    let body = template.body();
    let places = placeholders(&body);
    if template.parameter_format == NAMED && !(variables.is_empty() && places.is_empty()) {
        return Err(Unsendable::Named);
    }
    if let Some(what) = template.beyond_body() {
        return Err(Unsendable::BeyondBody(what));
    }
    let numbers: BTreeSet<u32> = places.iter().filter_map(|(_, name)| name.parse().ok()).collect();
    if numbers.len() != variables.len() {
        return Err(Unsendable::Variables { wanted: numbers.len(), given: variables.len() });
    }
    let values: BTreeMap<u32, &String> = numbers.into_iter().zip(&variables).collect();
    let (mut text, mut done) = (String::new(), 0);
    for (place, name) in places {
        if let Some(value) = name.parse().ok().and_then(|number: u32| values.get(&number)) {
            text.push_str(&body[done..place.start]);
            text.push_str(value);
            done = place.end;
            // The length is checked after each placeholder: one long value may fill many placeholders, and the text must not grow far
            // beyond the limit.
            if let Some(reason) = too_long(text.len()) {
                return Err(Unsendable::TooLong(reason));
            }
        }
    }
    text.push_str(&body[done..]);
    if let Some(reason) = too_long(text.len()) {
        return Err(Unsendable::TooLong(reason));
    }
    Ok(TemplateMessage { id: template.id.clone(), name: template.name.clone(), language: template.language.clone(), variables, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(status: &str, format: &str, body: &str) -> Template {
        Template {
            id: "tpl".into(),
            account_id: "acc".into(),
            name: "order".to_owned(),
            parameter_format: format.to_owned(),
            language: "th".to_owned(),
            status: status.to_owned(),
            category: "UTILITY".to_owned(),
            components: json!([{"type": "HEADER", "text": "An order"}, {"type": "BODY", "text": body}]).to_string(),
        }
    }

    #[test]
    fn a_template_is_filled_in_by_number() {
        let text = |body: &str, variables: &[&str]| {
            let variables = variables.iter().map(|text| (*text).to_owned()).collect();
            fill(&template("APPROVED", "POSITIONAL", body), variables).map(|filled| filled.text)
        };
        assert_eq!(text("Hi {{1}}, {{2}}!", &["Nok", "ส่งแล้ว"]), Ok("Hi Nok, ส่งแล้ว!".to_owned()));
        assert_eq!(text("{{2}} {{ 1 }} {{2}}", &["a", "{{2}}"]), Ok("{{2}} a {{2}}".to_owned()));
        assert_eq!(text("{{}} {{1 {{ x y }} }}", &[]), Ok("{{}} {{1 {{ x y }} }}".to_owned()));
        assert_eq!(text("plain", &[]), Ok("plain".to_owned()));
        assert_eq!(text("plain", &["a"]), Err(Unsendable::Variables { wanted: 0, given: 1 }));
        assert_eq!(text("{{1}} {{2}}", &["a"]), Err(Unsendable::Variables { wanted: 2, given: 1 }));
        assert_eq!(text("{{1}} {{1}}", &["a", "b"]), Err(Unsendable::Variables { wanted: 1, given: 2 }));
    }

    #[test]
    fn templates_with_an_unsendable_status_or_named_placeholders_are_refused() {
        for status in crate::domain::stores_and_accounts::TEMPLATE_STATUSES {
            let sendable = fill(&template(status, "POSITIONAL", "x"), vec![]).is_ok();
            assert_eq!(sendable, ["APPROVED", "REINSTATED", "FLAGGED"].contains(&status), "{status}");
        }
        assert_eq!(fill(&template("APPROVED", "NAMED", "Hi {{name}}"), vec![]), Err(Unsendable::Named));
        assert_eq!(fill(&template("APPROVED", "NAMED", "Hi"), vec!["a".to_owned()]), Err(Unsendable::Named));
        assert!(fill(&template("APPROVED", "NAMED", "Hi"), vec![]).is_ok());
    }

    #[test]
    fn a_template_with_a_placeholder_outside_of_its_body_is_not_sent() {
        for (status, format, expected) in [
            ("APPROVED", "POSITIONAL", Unsendable::BeyondBody("a placeholder in its HEADER".to_owned())),
            ("APPROVED", "NAMED", Unsendable::BeyondBody("a placeholder in its HEADER".to_owned())),
            ("PAUSED", "POSITIONAL", Unsendable::Status("PAUSED".to_owned())),
        ] {
            let mut template = template(status, format, "Hi");
            template.components = template.components.replace("An order", "Order {{1}}");
            assert_eq!(fill(&template, vec![]), Err(expected));
        }
    }

    #[test]
    fn reply_windows_depend_on_the_channel() {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let ago = |millis: i64| Some(now.plus_millis(-millis));
        for (channel, last, expected) in [
            ("whatsapp", ago(0), Ok(None)),
            ("whatsapp", ago(-HOUR), Ok(None)),
            ("whatsapp", ago(DAY), Ok(None)),
            ("whatsapp", ago(DAY + 1), Err(ReplyWindowClosed::TemplateOnly)),
            ("whatsapp", None, Err(ReplyWindowClosed::TemplateOnly)),
            ("facebook", ago(DAY), Ok(None)),
            ("instagram", ago(DAY + 1), Ok(Some(HUMAN_AGENT))),
            ("facebook", ago(7 * DAY), Ok(Some(HUMAN_AGENT))),
            ("instagram", ago(7 * DAY + 1), Err(ReplyWindowClosed::Until7Days)),
            ("facebook", None, Err(ReplyWindowClosed::Until7Days)),
            ("line", None, Ok(None)),
            ("gmail", ago(90 * DAY), Ok(None)),
        ] {
            assert_eq!(text_kind(channel, last, now), expected, "{channel} {last:?}");
        }
    }

    #[test]
    fn retries_have_jitter_and_end() {
        let now = Timestamp::from_millis(0);
        let pause = |attempts, asked, jitter| next_attempt(attempts, now, asked, jitter).map(Timestamp::millis);
        assert_eq!(pause(1, None, 0.0), Some(800));
        assert_eq!(pause(1, None, 1.0), Some(1_200));
        assert_eq!(pause(2, Some(60_000), 0.5), Some(60_000));
        assert_eq!(pause(PAUSES.len() as i64, None, 0.5), Some(1_800_000));
        assert_eq!(pause(PAUSES.len() as i64 + 1, None, 0.5), None);
    }

    #[test]
    fn a_reply_has_the_subject_of_its_thread() {
        assert_eq!(reply_subject(None), None);
        assert_eq!(reply_subject(Some("Order 7")).as_deref(), Some("Re: Order 7"));
        assert_eq!(reply_subject(Some("RE: Order 7")).as_deref(), Some("RE: Order 7"));
        assert_eq!(reply_subject(Some("ขอ")).as_deref(), Some("Re: ขอ"));
        assert_eq!(reply_subject(Some("re:\r\nBcc: eve@example.com\u{85}")).as_deref(), Some("re:  Bcc: eve@example.com "));
    }

    #[test]
    fn the_payload_of_a_mail_omits_absent_members() {
        let mailbox = |email: &str| Mailbox { email: email.to_owned(), name: None };
        let mail = Email {
            message_id: mail_id(&"m".into(), Some(&mailbox("shop@example.com"))),
            from: None,
            to: vec![mailbox("mia@example.com")],
            cc: vec![],
            bcc: vec![],
            subject: None,
            text: None,
            html: Some("<p>".to_owned()),
            in_reply_to: None,
            references: vec![],
        };
        let expected = json!({
            "type": "email", "email": {"messageId": "<m@example.com>", "to": [{"email": "mia@example.com"}], "html": "<p>"},
        });
        assert_eq!(Content::Email(mail).payload(), Some(expected));
    }
}
