//! Request bodies that differ between the two revisions of the API, in the form of revision B: labels, internal comments, text
//! messages.

use poem_openapi::Object;
use serde::Deserialize;

use crate::{
    domain::send_requests::Send,
    http::{machinery::error_responses::ApiError, schemas::write_inputs::bounded},
    service::conversation_writes::LabelUpdate,
};

/// Labels to add to a conversation and to remove from it.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelsInput {
    /// The conversation whose labels change.
    #[oai(validator(max_length = 64))]
    conversation_id: String,
    /// Ids of 1 to 10 labels to add. An unknown id is answered with 400; a label that is already present is ignored.
    #[oai(validator(min_items = 1, max_items = 10))]
    add_labels: Vec<String>,
    /// Ids of labels to remove. Labels that are not on the conversation are ignored; an unknown id is answered with 400. No id may
    /// also be in `addLabels`.
    #[oai(validator(max_items = 10))]
    remove_labels: Option<Vec<String>>,
}

const MAX_LABELS: usize = 10;

impl LabelsInput {
    pub fn check(self) -> Result<LabelUpdate, ApiError> {
        let (add, remove) = (self.add_labels, self.remove_labels.unwrap_or_default());
        if !(1..=MAX_LABELS).contains(&add.len()) {
            return Err(ApiError::field("body.addLabels", format!("must hold 1 to {MAX_LABELS} ids")));
        }
        if remove.len() > MAX_LABELS {
            return Err(ApiError::field("body.removeLabels", format!("must hold at most {MAX_LABELS} ids")));
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
    /// Plain text, at most 64 KiB in UTF-8. `<@userId:name@>` mentions a user.
    #[oai(validator(min_length = 1, max_length = 65_536))]
    text: String,
}

impl CommentInput {
    /// Checks the text, and returns the conversation's id and the text.
    pub fn check(self) -> Result<(String, String), ApiError> {
        if self.text.is_empty() {
            return Err(ApiError::field("body.text", "must not be empty"));
        }
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
    /// The text, which must not be blank.
    #[oai(validator(min_length = 1, max_length = 1000))]
    text: String,
}

const MAX_TEXT_CHARS: usize = 1000;

impl TextInput {
    pub fn send(self) -> Result<Send, ApiError> {
        if self.text.trim().is_empty() {
            return Err(ApiError::field("body.text", "must not be blank"));
        }
        if self.text.chars().count() > MAX_TEXT_CHARS {
            return Err(ApiError::field("body.text", format!("must be at most {MAX_TEXT_CHARS} characters long")));
        }
        Ok(Send::Text { conversation_id: self.conversation_id.into(), text: self.text })
    }
}
