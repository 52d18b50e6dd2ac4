//! Validation of the channel-specific parts of an imported message: its sender and its payload. Called by `record_validation`.

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use super::record_validation::{InvalidProperty, one_of, read};
use crate::domain::ordered_object::Object;

/// The sender of an imported message.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sender {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    avatar_url: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
}

pub const SENDERS: [&str; 4] = ["contact", "user", "bot", "system"];

const PAYLOADS: [&str; 6] = ["text", "image", "file", "email", "template", "other"];

/// The payload of an imported message: its content, as the channel describes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "read for its shape: what is stored is the text it came as")]
struct ImportedPayload {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    images: Option<Vec<String>>,
    attachments: Option<Vec<Object<Attachment>>>,
    email: Option<Object<ImportedEmail>>,
    template: Option<Object<ImportedTemplate>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "read for its shape")]
struct Attachment {
    name: String,
    url: String,
    mime_type: String,
    size: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "read for its shape")]
struct ImportedEmail {
    subject: Option<String>,
    from: Option<EmailAddress>,
    to: Option<Vec<Object<EmailAddress>>>,
    cc: Option<Vec<Object<EmailAddress>>>,
    bcc: Option<Vec<Object<EmailAddress>>>,
    html: Option<String>,
    message_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read for its shape")]
struct EmailAddress {
    email: String,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "read for its shape")]
struct ImportedTemplate {
    id: String,
    name: Option<String>,
    language: Option<String>,
    variables: Option<Vec<String>>,
}

/// The text and images of a channel payload, which are shown as the text and images of the message.
pub struct ShownPayload {
    pub text: Option<String>,
    pub images: Option<Vec<String>>,
}

/// Returns the parts of a payload that a message shows. Refuses a payload that does not have the shape of `ImportedPayload`, or in which a
/// property is null.
pub fn payload(raw: &RawValue) -> Result<ShownPayload, InvalidProperty> {
    let Object(payload) = read::<Object<ImportedPayload>>("payload", raw)?;
    one_of("payload.type", &payload.kind, &PAYLOADS)?;
    no_null("payload", &read::<Value>("payload", raw)?)?;
    Ok(ShownPayload { text: payload.text, images: payload.images })
}

/// Refuses nulls: absent properties must be left out, so that responses never contain a null.
pub fn no_null(place: &str, value: &Value) -> Result<(), InvalidProperty> {
    match value {
        Value::Null => Err(InvalidProperty::new(place, "must not be null; leave it out")),
        Value::Array(items) => items.iter().enumerate().try_for_each(|(i, item)| no_null(&format!("{place}[{i}]"), item)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| no_null(&format!("{place}.{name}"), member)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_a_known_type_and_known_properties() {
        let check = |text: &str| payload(&RawValue::from_string(text.to_owned()).unwrap()).map(|_| ()).map_err(|wrong| wrong.place);
        assert_eq!(check(r#"{"type":"text","text":"a"}"#), Ok(()));
        assert_eq!(check(r#"{"text":"a"}"#), Err("payload".to_owned()));
        assert_eq!(check(r#"{"type":"video"}"#), Err("payload.type".to_owned()));
        assert_eq!(check(r#"{"type":"text","colour":1}"#), Err("payload.colour".to_owned()));
        for (array, place) in [
            (r#"["text"]"#, "payload"),
            (r#"{"type":"email","email":["a"]}"#, "payload.email"),
            (r#"{"type":"email","email":{"to":[["a@b.c",null]]}}"#, "payload.email.to[0]"),
            (r#"{"type":"file","attachments":[["a","b","c",1]]}"#, "payload.attachments[0]"),
            (r#"{"type":"template","template":["a",null,null,null]}"#, "payload.template"),
        ] {
            assert_eq!(check(array), Err(place.to_owned()));
        }
    }

    #[test]
    fn text_and_images_come_from_the_payload_and_nulls_are_refused() {
        let read = |text: &str| match payload(&RawValue::from_string(text.to_owned()).unwrap()) {
            Ok(ShownPayload { text, images }) => Ok((text, images)),
            Err(wrong) => Err(wrong.place),
        };
        let images = vec!["https://example.com/a.png".to_owned()];
        assert_eq!(read(r#"{"type":"image","text":"a","images":["https://example.com/a.png"]}"#), Ok((Some("a".to_owned()), Some(images))));
        assert_eq!(read(r#"{"type":"email","email":{"subject":null}}"#), Err("payload.email.subject".to_owned()));
        assert_eq!(read(r#"{"type":"file","attachments":[{"name":"a"}]}"#), Err("payload.attachments[0]".to_owned()));
    }
}
