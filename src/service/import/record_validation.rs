//! Validation of imported records, and their conversion to the stored form.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{
    Definitions, ImportError, LineHeader,
    message_payload_validation::{SENDERS, Sender, ShownPayload, no_null, payload},
};
use crate::domain::{
    contacts::{is_e164, is_email},
    ids::{MAX_ID_CHARS, UserId},
    messages::MESSAGE_TYPES,
    ndjson_records::{
        Account, Comment, Contact, ContactField, Conversation, Label, Message, Role, Team, Template, Ticket, TicketField, User,
    },
    ordered_object::{Entries, Object},
    rules_for_older_records::RuleViolation,
    stores_and_accounts::{ACCOUNT_STATUSES, CHANNELS, PARAMETER_FORMATS, TEMPLATE_CATEGORIES, TEMPLATE_STATUSES},
    users_teams_labels::RoleKind,
};

/// A validation error: the path in the record, and the reason.
#[derive(Debug)]
pub struct InvalidProperty {
    pub place: String,
    pub reason: String,
}

impl InvalidProperty {
    pub fn new(place: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { place: place.into(), reason: reason.into() }
    }

    pub fn on(self, peek: &LineHeader<'_>) -> ImportError {
        ImportError::line(peek.line, format!("{}.{}", peek.kind.name(), self.place), self.reason)
    }
}

/// A record that can be validated.
pub trait Check {
    fn id(&self) -> &str;

    /// Applies the rules of `domain::rules_for_older_records`. Not called for a record with the flag `asStored`: the record was stored
    /// before these rules existed, and may break them.
    fn follow_later_rules(&mut self) -> Result<(), RuleViolation> {
        Ok(())
    }

    /// Validates the values and converts them to their stored form.
    fn check(&mut self, definitions: &Definitions) -> Result<(), InvalidProperty>;
}

impl Check for Role {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        not_blank("name", &self.name)?;
        one_of("kind", &self.kind, &RoleKind::ALL.map(RoleKind::name))
    }
}

impl Check for User {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        // A blank name counts as absent. `User::shown_name` decides what is shown in its place.
        self.name = self.name.take().filter(|name| !name.trim().is_empty());
        optional_id("roleId", self.role_id.as_ref().map(|id| id.as_str()))?;
        if let Some(user) = &mut self.user_id {
            if user.as_str().len() != 36 || uuid::Uuid::try_parse(user.as_str()).is_err() {
                return Err(InvalidProperty::new("userId", "must be a UUID such as 0190b1a2-7c3d-7e4f-8a5b-6c7d8e9f0a1b"));
            }
            person(user);
        }
        self.email.as_deref().map_or(Ok(()), |address| email("email", address))
    }
}

impl Check for Team {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        not_blank("name", &self.name)?;
        people("users", &mut self.users)
    }
}

impl Check for Account {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn follow_later_rules(&mut self) -> Result<(), RuleViolation> {
        self.breach().map_or(Ok(()), Err)
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        not_blank("name", &self.name)?;
        one_of("channel", self.channel.as_str(), &CHANNELS)?;
        one_of("status", &self.status, &ACCOUNT_STATUSES)?;
        if let Some(metadata) = &self.metadata {
            for (name, value) in &read::<Entries>("metadata", metadata)?.0 {
                no_null(&format!("metadata.{name}"), value)?;
            }
        }
        let Some(users) = &mut self.user_ids else { return Ok(()) };
        people("userIds", users)?;
        distinct("userIds", users.iter().map(UserId::as_str))
    }
}

impl Check for Template {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        id("accountId", self.account_id.as_str())?;
        one_of("parameter_format", &self.parameter_format, &PARAMETER_FORMATS)?;
        one_of("status", &self.status, &TEMPLATE_STATUSES)?;
        one_of("category", &self.category, &TEMPLATE_CATEGORIES)?;
        for (place, component) in read::<Vec<Entries>>("components", &self.components)?.iter().enumerate() {
            for (name, value) in &component.0 {
                no_null(&format!("components[{place}].{name}"), value)?;
            }
            let text = component.get("text").is_none_or(Value::is_string);
            if !text || !component.get("type").is_some_and(Value::is_string) {
                return Err(InvalidProperty::new(
                    format!("components[{place}]"),
                    "must be an object with a string `type` and, if any, a string `text`",
                ));
            }
        }
        Ok(())
    }
}

impl Check for Label {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        not_blank("label", &self.label)?;
        let digits = self.color.strip_prefix('#').unwrap_or_default();
        if digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            Ok(())
        } else {
            Err(InvalidProperty::new("color", format!("`{}` must be `#` and 6 hex digits, such as #1a2b3c", self.color)))
        }
    }
}

impl Check for ContactField {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        super::field_definitions::check_contact_field(self)
    }
}

impl Check for TicketField {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        super::field_definitions::check_ticket_field(self)
    }
}

impl Check for Contact {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn follow_later_rules(&mut self) -> Result<(), RuleViolation> {
        self.breach().map_or(Ok(()), Err)
    }

    fn check(&mut self, definitions: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        not_blank("fullName", &self.full_name)?;
        not_blank("firstName", &self.first_name)?;
        if let Some(address) = &self.email {
            email("email", address)?;
        }
        for (place, address) in self.secondary_emails.iter().flatten().enumerate() {
            email(&format!("secondaryEmails[{place}]"), address)?;
        }
        if self.phone.as_deref().is_some_and(|phone| !is_e164(phone)) {
            return Err(InvalidProperty::new("phone", "must be a phone number in E.164: `+`, a country code, and up to 14 digits in all"));
        }
        self.custom_fields.as_mut().map_or(Ok(()), |fields| definitions.contact_values(fields))
    }
}

impl Check for Conversation {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn follow_later_rules(&mut self) -> Result<(), RuleViolation> {
        self.unfold();
        self.normalise_reference_id()
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        id("accountId", self.account_id.as_str())?;
        id("contactId", self.contact_id.as_str())?;
        one_of("channel", self.channel.as_str(), &CHANNELS)?;
        for (place, label) in self.label_ids.iter().enumerate() {
            id(&format!("labelIds[{place}]"), label.as_str())?;
        }
        distinct("labelIds", self.label_ids.iter().map(|label| label.as_str()))?;
        if self.unread_msg_cnt < 0 {
            return Err(InvalidProperty::new("unreadMsgCnt", "must not be negative"));
        }
        printable("referenceId", &self.reference_id)
    }
}

impl Check for Ticket {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn follow_later_rules(&mut self) -> Result<(), RuleViolation> {
        self.breach().map_or(Ok(()), Err)
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        id("conversationId", self.conversation_id.as_str())?;
        optional_id("accountId", self.account_id.as_ref().map(|id| id.as_str()))?;
        optional_id("contactId", self.contact_id.as_ref().map(|id| id.as_str()))?;
        if let Some(channel) = &self.channel {
            one_of("channel", channel.as_str(), &CHANNELS)?;
        }
        if let Some(number) = &self.ticket_number {
            id("ticketNumber", number)?;
        }
        if self.is_open && self.closed_at.is_some() {
            return Err(InvalidProperty::new("closedAt", "must be absent where `isOpen` is true"));
        }
        for (place, user) in [("assigneeUserId", &mut self.assignee_user_id), ("handledBy", &mut self.handled_by)] {
            if let Some(user) = user {
                id(place, user.as_str())?;
                person(user);
            }
        }
        Ok(())
    }
}

impl Check for Message {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn follow_later_rules(&mut self) -> Result<(), RuleViolation> {
        self.unfold();
        Ok(())
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        id("conversationId", self.conversation_id.as_str())?;
        if let Some(kind) = &self.kind {
            one_of("type", kind, &MESSAGE_TYPES)?;
        }
        if let Some(user) = &mut self.author_user_id {
            id("authorUserId", user.as_str())?;
            person(user);
        }
        if let Some(external) = &self.external_id {
            printable("externalId", external)?;
        }
        if let Some(raw) = &self.sender {
            let Object(sender) = read::<Object<Sender>>("sender", raw)?;
            one_of("sender.type", &sender.kind, &SENDERS)?;
            self.sender =
                Some(serde_json::value::to_raw_value(&sender).map_err(|error| InvalidProperty::new("sender", error.to_string()))?);
        }
        self.text = self.text.take().filter(|text| !text.is_empty());
        self.images = self.images.take().filter(|images| !images.is_empty());
        if let Some(raw) = &self.payload {
            // The message also gets the text and the images of its payload, since one API revision does not show payloads.
            let ShownPayload { text, images } = payload(raw)?;
            self.text = agreed("text", self.text.take(), text)?;
            self.images = agreed("images", self.images.take(), images)?;
        }
        Ok(())
    }
}

impl Check for Comment {
    fn id(&self) -> &str {
        self.id.as_str()
    }

    fn follow_later_rules(&mut self) -> Result<(), RuleViolation> {
        self.breach().map_or(Ok(()), Err)
    }

    fn check(&mut self, _: &Definitions) -> Result<(), InvalidProperty> {
        id("id", self.id.as_str())?;
        id("conversationId", self.conversation_id.as_str())?;
        id("createdBy", self.created_by.as_str())?;
        person(&mut self.created_by);
        Ok(())
    }
}

/// Returns the value of a property that a message itself (`own`) and its payload (`lent`) may have. If both have it, the values must be
/// equal. An empty value is left out.
fn agreed<T: PartialEq + Default>(property: &str, own: Option<T>, lent: Option<T>) -> Result<Option<T>, InvalidProperty> {
    match (own, lent) {
        (Some(own), Some(lent)) if own != lent => Err(InvalidProperty::new(
            format!("payload.{property}"),
            format!("is not the message's own `{property}`; they must be the same"),
        )),
        (own, lent) => Ok(own.or(lent).filter(|value| *value != T::default())),
    }
}

/// Parses JSON as `T`. `place` is the path of the JSON in the record. An error contains the path of the invalid value.
pub fn read<'de, T: Deserialize<'de>>(place: &str, raw: &'de RawValue) -> Result<T, InvalidProperty> {
    let mut reader = serde_json::Deserializer::from_str(raw.get());
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let text = error.inner().to_string();
        let reason = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
        let dot = if path.starts_with('[') { "" } else { "." };
        InvalidProperty::new(if path == "." { place.to_owned() } else { format!("{place}{dot}{path}") }, reason)
    })
}

/// Validates an id: 1 to 64 characters, none of them a control character.
pub fn id(place: &str, id: &str) -> Result<(), InvalidProperty> {
    // A text never has more characters than bytes, so characters are counted only if there are more bytes than the limit.
    let length = if id.len() <= MAX_ID_CHARS { id.len() } else { id.chars().count() };
    if length == 0 || length > MAX_ID_CHARS {
        return Err(InvalidProperty::new(place, format!("must have 1 to {MAX_ID_CHARS} characters")));
    }
    printable(place, id)
}

fn optional_id(place: &str, value: Option<&str>) -> Result<(), InvalidProperty> {
    value.map_or(Ok(()), |value| id(place, value))
}

pub fn not_blank(place: &str, text: &str) -> Result<(), InvalidProperty> {
    if text.trim().is_empty() { Err(InvalidProperty::new(place, "must not be blank")) } else { Ok(()) }
}

fn printable(place: &str, text: &str) -> Result<(), InvalidProperty> {
    if text.chars().any(char::is_control) { Err(InvalidProperty::new(place, "must not contain control characters")) } else { Ok(()) }
}

pub fn one_of(place: &str, value: &str, allowed: &[&str]) -> Result<(), InvalidProperty> {
    if allowed.contains(&value) { Ok(()) } else { Err(InvalidProperty::new(place, format!("`{value}` is none of {}", allowed.join(", ")))) }
}

fn email(place: &str, address: &str) -> Result<(), InvalidProperty> {
    if is_email(address) { Ok(()) } else { Err(InvalidProperty::new(place, format!("`{address}` is not an e-mail address"))) }
}

fn distinct<'a>(place: &str, values: impl Iterator<Item = &'a str>) -> Result<(), InvalidProperty> {
    let mut seen = std::collections::HashSet::new();
    for value in values {
        if !seen.insert(value) {
            return Err(InvalidProperty::new(place, format!("names `{value}` twice")));
        }
    }
    Ok(())
}

fn people(place: &str, users: &mut [UserId]) -> Result<(), InvalidProperty> {
    for (at, user) in users.iter_mut().enumerate() {
        id(&format!("{place}[{at}]"), user.as_str())?;
        person(user);
    }
    Ok(())
}

/// Lower-cases a UUID, since requests look UUIDs up in that form. Other ids are unchanged.
fn person(user: &mut UserId) {
    if user.as_str().len() == 36
        && user.as_str().bytes().any(|byte| byte.is_ascii_uppercase())
        && uuid::Uuid::try_parse(user.as_str()).is_ok()
    {
        *user = UserId::from(user.as_str().to_ascii_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_need_1_to_64_characters_and_no_control_characters() {
        assert!(id("id", &"ท".repeat(64)).is_ok());
        for bad in ["", &"a".repeat(65), "a\u{1}"] {
            assert!(id("id", bad).is_err(), "{bad:?}");
        }
    }

    /// Returns the stored form of a record, or the path of the error.
    fn checked<T: serde::de::DeserializeOwned + serde::Serialize + Check>(record: &str) -> Result<String, String> {
        let mut record: T = serde_json::from_str(record).unwrap();
        record.check(&Definitions::default()).map_err(|wrong| wrong.place)?;
        Ok(serde_json::to_string(&record).unwrap())
    }

    #[test]
    fn colours_have_six_digits() {
        let label = |color: &str| checked::<Label>(&format!(r#"{{"id":"l","label":"L","color":"{color}"}}"#));
        assert_eq!(label("#aBc123").unwrap(), r##"{"id":"l","label":"L","color":"#aBc123"}"##);
        for bad in ["#abc", "aabbcc", "#aabbccdd", "#aabbcg", "##aabbcc", ""] {
            assert_eq!(label(bad), Err("color".to_owned()), "{bad}");
        }
    }

    #[test]
    fn blank_names_are_refused_but_a_users_is_left_out() {
        assert_eq!(checked::<Role>(r#"{"id":"r","name":" ","kind":"owner"}"#), Err("name".to_owned()));
        assert_eq!(checked::<Team>(r#"{"id":"t","name":"","users":[]}"#), Err("name".to_owned()));
        assert_eq!(checked::<Account>(r#"{"id":"a","name":"\t","channel":"line","status":"healthy"}"#), Err("name".to_owned()));
        assert_eq!(checked::<Label>(r##"{"id":"l","label":"","color":"#000000"}"##), Err("label".to_owned()));
        let contact = |full: &str, first: &str| {
            let times = r#""createdAt":"2026-01-01T00:00:00Z","updatedAt":"2026-01-01T00:00:00Z""#;
            checked::<Contact>(&format!(r#"{{"id":"c","fullName":"{full}","firstName":"{first}",{times}}}"#))
        };
        assert_eq!(contact("", "A"), Err("fullName".to_owned()));
        assert_eq!(contact("A", "\u{a0}"), Err("firstName".to_owned()));
        assert_eq!(checked::<User>(r#"{"id":"s","name":" "}"#).unwrap(), r#"{"id":"s"}"#);
    }

    #[test]
    fn nulls_and_arrays_are_refused_for_objects() {
        let account = |metadata: &str| {
            checked::<Account>(&format!(r#"{{"id":"a","name":"A","channel":"line","status":"healthy","metadata":{metadata}}}"#))
        };
        assert!(account(r#"{"country": "TH","followerCount":1.0}"#).unwrap().contains(r#"{"country": "TH","followerCount":1.0}"#));
        assert_eq!(account(r#"{"a":{"b":null}}"#), Err("metadata.a.b".to_owned()));
        assert_eq!(account("[]"), Err("metadata".to_owned()));
        let template = |components: &str| {
            checked::<Template>(&format!(
                r#"{{"id":"t","accountId":"a","name":"T","parameter_format":"POSITIONAL","language":"th","status":"APPROVED","category":"UTILITY","components":{components}}}"#
            ))
        };
        assert!(template(r#"[{"type":"BODY","text":"a"}]"#).is_ok());
        assert_eq!(template(r#"[{"type":"BODY","text":null}]"#), Err("components[0].text".to_owned()));
        assert_eq!(template(r#"[["BODY","a"]]"#), Err("components[0]".to_owned()));
    }

    #[test]
    fn a_message_must_agree_with_its_payload_and_loses_empty_members() {
        let message = |rest: &str| {
            checked::<Message>(&format!(
                r#"{{"id":"m","conversationId":"c","direction":"inbound","sentAt":"2026-01-01T00:00:00Z",{rest}}}"#
            ))
        };
        let head = r#"{"id":"m","conversationId":"c","direction":"inbound","sentAt":"2026-01-01T00:00:00.000Z""#;
        assert_eq!(message(r#""text":"","images":[]"#), Ok(format!("{head}}}")));
        let lent = r#""payload":{"type":"image","text":"a","images":["i"]}"#;
        assert_eq!(message(&format!(r#""text":"",{lent}"#)), Ok(format!(r#"{head},"text":"a","images":["i"],{lent}}}"#)));
        assert_eq!(message(&format!(r#""text":"b",{lent}"#)), Err("payload.text".to_owned()));
        assert_eq!(message(&format!(r#""images":["i","j"],{lent}"#)), Err("payload.images".to_owned()));
        assert_eq!(message(r#""sender":["x",null,null,"contact"]"#), Err("sender".to_owned()));
        assert_eq!(
            message(r#""sender":{"type":"bot","name":null,"id":"x"}"#),
            Ok(format!(r#"{head},"sender":{{"id":"x","type":"bot"}}}}"#))
        );
    }

    #[test]
    fn user_ids_are_stored_in_lower_case() {
        let mut user = UserId::from("00000000-0000-4000-8000-00000000000A");
        person(&mut user);
        assert_eq!(user.as_str(), "00000000-0000-4000-8000-00000000000a");
        let mut other = UserId::from("Somebody");
        person(&mut other);
        assert_eq!(other.as_str(), "Somebody");
    }
}
