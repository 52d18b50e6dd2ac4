//! Collects the texts of a message for the search index: the message's text, its subject and that of its conversation.

use serde::Deserialize;

use crate::domain::{
    ids::StoreId,
    messages::Message,
    search::{Searchable, SearchableKind},
};

/// Makes the search index's record of a message from the message in memory. `Db::searchables` reads the same record from the database.
/// `subject` is the subject of the message's conversation.
pub(in crate::store) fn searchable(store: &StoreId, message: &Message, subject: Option<&str>) -> Searchable {
    Searchable {
        store: store.clone(),
        noun: SearchableKind::Message,
        id: message.id.to_string(),
        at: message.sort_at.millis(),
        texts: message_texts(message.text.clone(), message.payload.as_deref(), subject.map(str::to_owned)),
    }
}

/// Returns the message's text, its own subject, and the conversation's subject if it differs from the message's subject.
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
    // A payload that is not JSON of this shape has no subject.
    serde_json::from_str::<PayloadTexts>(payload).ok()?.email?.subject
}
