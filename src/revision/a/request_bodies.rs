//! Request bodies that differ between the two revisions of the API, in the form of revision A: labels, internal comments, text
//! messages.

use poem_openapi::Object;
use serde::Deserialize;
use serde_json::Value;

use crate::{
    domain::send_requests::Send,
    http::{
        machinery::{body::Body, error_responses::ApiError},
        schemas::write_inputs::bounded,
    },
    service::conversation_writes::LabelUpdate,
};

/// Labels to add to a conversation and to remove from it. At least one of the two lists must hold an id.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelsInput {
    /// The conversation whose labels change.
    #[oai(validator(max_length = 64))]
    conversation_id: String,
    /// Ids of labels to add. Unknown labels and labels that are already present are ignored. Optional if `removeLabels` holds an id.
    #[oai(validator(max_items = 10))]
    add_labels: Option<Vec<String>>,
    /// Ids of labels to remove. Labels that are not on the conversation are ignored. No id may also be in `addLabels`.
    #[oai(validator(max_items = 10))]
    remove_labels: Option<Vec<String>>,
}

const MAX_LABELS: usize = 10;

impl LabelsInput {
    pub fn check(self) -> Result<LabelUpdate, ApiError> {
        let (add, remove) = (self.add_labels.unwrap_or_default(), self.remove_labels.unwrap_or_default());
        if add.is_empty() && remove.is_empty() {
            return Err(ApiError::field("body.addLabels", "or `removeLabels` must hold an id"));
        }
        for (name, ids) in [("addLabels", &add), ("removeLabels", &remove)] {
            if ids.len() > MAX_LABELS {
                return Err(ApiError::field(&format!("body.{name}"), format!("must hold at most {MAX_LABELS} ids")));
            }
        }
        Ok(LabelUpdate {
            conversation_id: self.conversation_id.into(),
            add: add.into_iter().map(Into::into).collect(),
            remove: remove.into_iter().map(Into::into).collect(),
        })
    }
}

/// An internal comment, which the customer does not see.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommentInput {
    /// The conversation that the comment is added to.
    #[oai(validator(max_length = 64))]
    conversation_id: String,
    /// Plain text, at most 64 KiB in UTF-8.
    #[oai(validator(max_length = 65_536))]
    text: String,
}

impl CommentInput {
    /// Checks the text, and returns the conversation's id and the text.
    pub fn check(self) -> Result<(String, String), ApiError> {
        bounded("body.text", &self.text)?;
        Ok((self.conversation_id, self.text))
    }
}

/// A text message to send.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TextInput {
    /// The conversation to send the text in. On some channels, texts are refused if the contact has not written recently.
    #[oai(validator(max_length = 64))]
    conversation_id: String,
    /// The text, at most 64 KiB in UTF-8.
    #[oai(validator(max_length = 65_536))]
    text: String,
}

impl TextInput {
    pub fn send(self) -> Result<Send, ApiError> {
        bounded("body.text", &self.text)?;
        Ok(Send::Text { conversation_id: self.conversation_id.into(), text: self.text })
    }
}

/// Parses the request body of an operation that sends messages, with the same checks as the operation's handler. Returns the message.
pub fn send_of(operation: &str, body: &Value) -> Result<Send, ApiError> {
    match operation {
        "sendTextMessage" => Body::<TextInput>::of_value(body).parse()?.send(),
        other => Err(ApiError::field("operation", format!("`{other}` is not an operation of revision A that sends a message"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_send_is_read_from_the_body_of_its_operation() {
        let body = json!({"conversationId": "c1", "text": "Hi"});
        assert_eq!(send_of("sendTextMessage", &body).unwrap().body(), body);
        for (operation, body, start) in [
            ("sendTextMessage", json!({"conversationId": "c1"}), "`body.text` is required"),
            ("sendTextMessage", json!({"conversationId": "c1", "text": "Hi", "html": "Hi"}), "`body.html` is not a known property"),
            ("sendEmailReply", json!({"conversationId": "c1"}), "`operation` `sendEmailReply` is not an operation of revision A"),
        ] {
            let refused = send_of(operation, &body).unwrap_err();
            assert!(refused.status.as_u16() == 400 && refused.message.starts_with(start), "{refused}");
        }
    }
}
