//! The texts of a message that the search index takes.

use serde::Deserialize;

use crate::domain::{
    ids::StoreId,
    messages::Message,
    search::{Noun, Searchable},
};

/// A message as `Db::searchables` reads it. `subject` is the subject of its conversation.
pub(in crate::store) fn searchable(store: &StoreId, message: &Message, subject: Option<&str>) -> Searchable {
    Searchable {
        store: store.clone(),
        noun: Noun::Message,
        id: message.id.to_string(),
        at: message.sort_at.millis(),
        texts: message_texts(message.text.clone(), message.payload.as_deref(), subject.map(str::to_owned)),
    }
}

/// The message's text and its subjects: its own, and the conversation's if that differs.
pub(in crate::store) fn message_texts(text: Option<String>, payload: Option<&str>, subject: Option<String>) -> Vec<String> {
    let own = payload.filter(|payload| payload.contains("\"subject\"")).and_then(own_subject);
    let subject = subject.filter(|subject| own.as_ref() != Some(subject));
    [text, own, subject].into_iter().flatten().collect()
}

fn own_subject(payload: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct PayloadTexts {
        email: Option<EmailTexts>,
    }
    #[derive(Deserialize)]
    struct EmailTexts {
        subject: Option<String>,
    }
    // A payload of another shape has no subject.
    serde_json::from_str::<PayloadTexts>(payload).ok()?.email?.subject
}
