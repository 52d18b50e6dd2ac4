//! Searching messages and contacts: sections 2.6, 2.8 and 4.1. Revision B alone has it.

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use crate::{
    domain::{
        rules::SEARCH_PAGE_SIZE,
        search::{ContactHit, MessageHit},
        time::Timestamp,
    },
    http::{
        document::tags::Tag,
        machinery::{
            auth::{Authorised, ContactsRead, MessagesRead},
            error::{Failure, Listing},
            expand::NoExpand,
            paging::{PageStep, Paged},
            params::{Absent, CursorText, NoPageSize, Query, Required, SearchText},
            reply::Reply,
        },
    },
};

/// A message that a search found.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub struct MessageSearchHit {
    /// The message that was found.
    pub id: String,
    /// The conversation that the message was sent in.
    pub conversation_id: String,
    /// Empty where the message has none.
    pub text: String,
    /// True when the contact sent it.
    pub sent_by_recipient: bool,
    /// When the message was sent.
    pub sent_at: Timestamp,
    /// How well the message matches. Comparable within one walk.
    pub score: f64,
}

impl From<MessageHit> for MessageSearchHit {
    fn from(hit: MessageHit) -> Self {
        Self {
            id: hit.id.into_string(),
            conversation_id: hit.conversation_id.into_string(),
            text: hit.text.unwrap_or_default(),
            sent_by_recipient: hit.inbound,
            sent_at: hit.sent_at,
            score: hit.score,
        }
    }
}

/// A contact that a search found.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct ContactSearchHit {
    /// The contact that was found; GET /contacts returns all of it by this id.
    pub id: String,
    /// The contact's whole name for display.
    pub full_name: String,
    /// The primary phone number, in E.164.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// The properties that the search matches.
    pub matched_fields: Vec<String>,
}

impl From<ContactHit> for ContactSearchHit {
    fn from(hit: ContactHit) -> Self {
        Self {
            id: hit.id.into_string(),
            full_name: hit.full_name,
            phone: hit.phone,
            matched_fields: hit.matched_fields.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// Search operations.
#[derive(Debug)]
pub struct SearchOperations;

#[OpenApi]
impl SearchOperations {
    /// Search messages
    ///
    /// Finds messages by text and e-mail subject, the best matches first, ten a page. Every term must match, the last one
    /// as a beginning too; Thai, Lao, Khmer, Burmese, Chinese and Japanese text is found by any part of it.
    #[oai(path = "/messages/search", method = "get", operation_id = "searchMessages", tag = "Tag::Messages")]
    async fn search_messages(
        &self,
        request: Authorised<MessagesRead>,
        /// What is looked for.
        query: Query<Required<SearchText>>,
        /// Where the page begins: `x-pagination-next-cursor` of the page before.
        cursor: Query<CursorText>,
        _size: NoPageSize,
        _expand: NoExpand,
    ) -> Result<Reply<Paged<MessageSearchHit>>, Failure<Listing>> {
        let text = query.0.0.0;
        let walk = PageStep::step(&request, "searchMessages", SEARCH_PAGE_SIZE, &cursor.0, &Absent, &text)?;
        let hits = request.reads_many().await?.search_messages(request.store(), &text, walk.request()).await?;
        Ok(walk.reply(&request, hits))
    }

    /// Search contacts
    ///
    /// Finds contacts by names, e-mail addresses, phone numbers and note, the best matches first, ten a page. Every term
    /// must match somewhere, the last one as a beginning too; of a phone number any four digits in a row do.
    #[oai(path = "/contacts/search", method = "get", operation_id = "searchContacts", tag = "Tag::Contacts")]
    async fn search_contacts(
        &self,
        request: Authorised<ContactsRead>,
        /// What is looked for.
        query: Query<Required<SearchText>>,
        /// Where the page begins: `x-pagination-next-cursor` of the page before.
        cursor: Query<CursorText>,
        _size: NoPageSize,
        _expand: NoExpand,
    ) -> Result<Reply<Paged<ContactSearchHit>>, Failure<Listing>> {
        let text = query.0.0.0;
        let walk = PageStep::step(&request, "searchContacts", SEARCH_PAGE_SIZE, &cursor.0, &Absent, &text)?;
        let hits = request.reads_many().await?.search_contacts(request.store(), &text, walk.request()).await?;
        Ok(walk.reply(&request, hits))
    }
}
