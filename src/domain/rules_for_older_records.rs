//! Validation rules that were introduced after records had been stored. Stored records may break these rules. An export flags such a record
//! with `asStored`. An import accepts a flagged record unchanged, and applies the rules to all other records.

use serde_json::{Value, value::RawValue};

use super::{
    inbound_messages::{NO_PHONE, thread_name},
    ndjson_records::{Account, Comment, Contact, Conversation, Direction, Message, Record, Ticket},
    ordered_object::Entries,
    text_byte_limit::{bytes_of_texts, too_long},
    unicode_text::unfolded,
};

/// A violation of a rule: the path of the property that breaks the rule, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleViolation {
    pub place: String,
    pub reason: String,
}

impl Comment {
    /// Checks the comment against the rules of this module. Returns the first violation; `None` if there is none.
    pub fn breach(&self) -> Option<RuleViolation> {
        text_breach("text", self.text.len())
    }
}

impl Ticket {
    /// Checks the ticket against the rules of this module. Returns the first violation; `None` if there is none.
    pub fn breach(&self) -> Option<RuleViolation> {
        values_breach("ticketFields", &self.ticket_fields)
    }
}

impl Contact {
    /// Checks the contact against the rules of this module. Returns the first violation; `None` if there is none.
    pub fn breach(&self) -> Option<RuleViolation> {
        let note = self.note.as_ref().and_then(|note| text_breach("note", note.len()));
        let addresses = self.addresses.iter().flatten().enumerate();
        let mut addresses = addresses.filter_map(|(place, address)| text_breach(&format!("addresses[{place}]"), address.len()));
        note.or_else(|| addresses.next()).or_else(|| self.custom_fields.as_ref().and_then(|fields| values_breach("customFields", fields)))
    }
}

impl Account {
    /// Returns the first violation of this rule: each property of `metadata` that the API contract lists must have the type that the
    /// contract states.
    pub fn breach(&self) -> Option<RuleViolation> {
        let metadata: Entries = serde_json::from_str(self.metadata.as_ref()?.get()).ok()?;
        let wrong = |name: &str, fits: fn(&Value) -> bool| metadata.get(name).is_some_and(|value| !fits(value));
        let is_whole = |value: &Value| value.as_f64().is_some_and(|number| number.fract() == 0.0);
        let breach = |name: &str, reason: &str| RuleViolation { place: format!("metadata.{name}"), reason: reason.to_owned() };
        let text =
            ["userName", "country"].into_iter().find(|name| wrong(name, Value::is_string)).map(|name| breach(name, "must be a string"));
        text.or_else(|| wrong("followerCount", is_whole).then(|| breach("followerCount", "must be a whole number")))
    }
}

impl Conversation {
    /// Converts `reference_id`, the channel's id of the thread, to its canonical form. Returns an error if the id is not valid on the
    /// channel.
    pub fn normalise_reference_id(&mut self) -> Result<(), RuleViolation> {
        let breach = || RuleViolation { place: "referenceId".to_owned(), reason: NO_PHONE.to_owned() };
        self.reference_id = thread_name(self.channel.as_str(), &self.reference_id).ok_or_else(breach)?;
        Ok(())
    }

    /// Puts the e-mail subject on one line, and removes a blank subject.
    pub fn unfold(&mut self) {
        self.email_subject = self.email_subject.take().and_then(|subject| unfolded(&subject));
    }

    fn is_named_otherwise(&self) -> bool {
        thread_name(self.channel.as_str(), &self.reference_id).as_ref() != Some(&self.reference_id)
    }

    fn is_folded(&self) -> bool {
        self.email_subject.as_ref().is_some_and(|subject| unfolded(subject).as_ref() != Some(subject))
    }
}

impl Message {
    /// Puts the subject of an inbound e-mail on one line, and removes a blank subject. An outbound e-mail stays unchanged, since its
    /// subject may be empty.
    pub fn unfold(&mut self) {
        if let Some(payload) = self.unfolded_payload() {
            self.payload = Some(payload);
        }
    }

    /// Returns the payload of an inbound message with its subject on one line; `None` if the payload needs no change.
    fn unfolded_payload(&self) -> Option<Box<RawValue>> {
        let raw = self.payload.as_ref().filter(|_| self.direction == Direction::Inbound)?;
        let mut payload: Entries = serde_json::from_str(raw.get()).ok()?;
        let mut email = payload.get("email")?.as_object()?.clone();
        let subject = email.get("subject")?.as_str()?;
        match unfolded(subject) {
            Some(line) if line == subject => return None,
            Some(line) => _ = email.insert("subject".to_owned(), line.into()),
            None => _ = email.remove("subject"),
        }
        payload.set("email", Some(Value::Object(email)));
        serde_json::value::to_raw_value(&payload).ok()
    }
}

impl Record {
    /// Whether this record breaks a rule of this module. Without the flag `asStored` an import would refuse or change such a record, so an
    /// export sets the flag.
    pub fn breaks_a_later_rule(&self) -> bool {
        match self {
            Self::Account(record) => record.breach().is_some(),
            Self::Contact(record) => record.breach().is_some(),
            Self::Ticket(record) => record.breach().is_some(),
            Self::Comment(record) => record.breach().is_some(),
            Self::Conversation(record) => record.is_named_otherwise() || record.is_folded(),
            Self::Message(record) => record.unfolded_payload().is_some(),
            _ => false,
        }
    }
}

fn text_breach(place: &str, bytes: usize) -> Option<RuleViolation> {
    too_long(bytes).map(|reason| RuleViolation { place: place.to_owned(), reason })
}

fn values_breach(place: &str, fields: &Entries) -> Option<RuleViolation> {
    fields.0.iter().find_map(|(key, value)| text_breach(&format!("{place}.{key}"), bytes_of_texts(value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listed_members_of_an_accounts_metadata_have_one_type_each() {
        let breach = |metadata: &str| {
            let account = format!(r#"{{"id":"a","channel":"line","name":"A","status":"healthy","metadata":{metadata}}}"#);
            serde_json::from_str::<Account>(&account).unwrap().breach().map(|breach| breach.place)
        };
        assert_eq!(breach(r#"{"userName":"shop","country":"TH","followerCount":12.0,"other":[1]}"#), None);
        for (metadata, place) in
            [(r#"{"userName":1}"#, "userName"), (r#"{"country":["TH"]}"#, "country"), (r#"{"followerCount":1.5}"#, "followerCount")]
        {
            assert_eq!(breach(metadata), Some(format!("metadata.{place}")));
        }
    }

    #[test]
    fn the_subject_of_an_inbound_mail_is_one_line_and_a_blank_one_is_none() {
        let read = |direction: &str, subject: &str| {
            let mut message: Message = serde_json::from_str(&format!(
                r#"{{"id":"m","conversationId":"c","direction":"{direction}","sentAt":"2026-01-01T00:00:00Z",
                    "payload":{{"type":"email","email":{{"messageId":"<a@b>","subject":"{subject}"}},"text":"x"}}}}"#
            ))
            .unwrap();
            let folded = message.unfolded_payload().is_some();
            message.unfold();
            (folded, message.payload.unwrap().to_string())
        };
        let mail = |rest: &str| format!(r#"{{"type":"email","email":{{"messageId":"<a@b>"{rest}}},"text":"x"}}"#);
        assert_eq!(read("inbound", "Order 7"), (false, mail(r#","subject":"Order 7""#)));
        assert_eq!(read("inbound", r"Your order\r\n of yesterday"), (true, mail(r#","subject":"Your order of yesterday""#)));
        assert_eq!(read("inbound", r" \n"), (true, mail("")));
        assert_eq!(read("outbound", ""), (false, mail(r#","subject":"""#)));
    }
}
