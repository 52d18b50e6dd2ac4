//! Search operations: full-text search of messages and contacts (API contract, sections 2.6, 2.8 and 4.1). Only revision B of the API has
//! these operations.

use poem_openapi::{Object, OpenApi};
use serde::Serialize;

use crate::{
    domain::{
        revision_rules::SEARCH_PAGE_SIZE,
        search::{ContactHit, MessageHit},
        time::Timestamp,
    },
    http::{
        machinery::{
            auth::{Authorised, ContactsRead, MessagesRead},
            error_responses::{Failure, Listing},
            expand_parameter::NoExpand,
            paging::{PageStep, Paged},
            params::{CursorText, IgnoredParam, NoPageSize, Query, Required, SearchText},
            success_responses::Reply,
        },
        openapi::openapi_tags::Tag,
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
    /// The text of the message; empty if it has none.
    pub text: String,
    /// Whether the contact sent the message; `Recipient` in the name of the property stands for the contact.
    pub sent_by_recipient: bool,
    /// When the message was sent.
    pub sent_at: Timestamp,
    /// The relevance of the message: better matches have higher scores. Only scores from the pages of one search are comparable.
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
    /// The contact that was found; GET /contacts returns the whole contact by this id.
    pub id: String,
    /// The contact's whole name for display.
    pub full_name: String,
    /// The primary phone number, in E.164.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// The names of the contact's properties that match a term, such as `fullName`.
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
    /// Finds messages by text and e-mail subject, the best matches first, ten per page. Every term of `query` must match; the last term may
    /// be only the beginning of a word. Text in Thai, Lao, Khmer, Burmese, Chinese and Japanese is found by any part of the text.
    #[oai(path = "/messages/search", method = "get", operation_id = "searchMessages", tag = "Tag::Messages")]
    async fn search_messages(
        &self,
        request: Authorised<MessagesRead>,
        /// The terms to search for.
        query: Query<Required<SearchText>>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        _size: NoPageSize,
        _expand: NoExpand,
    ) -> Result<Reply<Paged<MessageSearchHit>>, Failure<Listing>> {
        let text = query.0.0.0;
        let walk = PageStep::step(&request, "searchMessages", SEARCH_PAGE_SIZE, &cursor.0, &IgnoredParam, &text)?;
        let hits = request.reads_many().await?.search_messages(request.store(), &text, walk.request()).await?;
        Ok(walk.reply(&request, hits))
    }

    /// Search contacts
    ///
    /// Finds contacts by names, e-mail addresses, phone numbers and note, the best matches first, ten per page. Every term of `query` must
    /// match in one of these; the last term may be only the beginning of a word. Any four consecutive digits of a phone number match.
    #[oai(path = "/contacts/search", method = "get", operation_id = "searchContacts", tag = "Tag::Contacts")]
    async fn search_contacts(
        &self,
        request: Authorised<ContactsRead>,
        /// The terms to search for.
        query: Query<Required<SearchText>>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        _size: NoPageSize,
        _expand: NoExpand,
    ) -> Result<Reply<Paged<ContactSearchHit>>, Failure<Listing>> {
        let text = query.0.0.0;
        let walk = PageStep::step(&request, "searchContacts", SEARCH_PAGE_SIZE, &cursor.0, &IgnoredParam, &text)?;
        let hits = request.reads_many().await?.search_contacts(request.store(), &text, walk.request()).await?;
        Ok(walk.reply(&request, hits))
    }
}
