//! Contacts and their field definitions: sections 2.6, 2.7 and 4.1.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{
    auth::{Authorised, ContactsRead},
    body::FilterBody,
    error::{ApiError, Failure, FilteredListing, Listing, Lookup},
    expand::NoExpand,
    fields::ContactField,
    paging::OpenedCursor,
    params::{CursorText, Id, PageSize, Query, Required},
    reply::{All, One, Paged, Reply},
    values::{AddressText, AnyObject, Stored},
};
use crate::{
    domain::{
        contacts::{self as domain, ContactFilter},
        ids::ContactId,
        time::{Bound, Timestamp},
    },
    revision::wire::PageParam,
};

/// A contact of the store.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    pub id: String,
    pub full_name: String,
    pub first_name: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// The primary e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<AddressText>,
    /// The primary phone number, in E.164.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary_phones: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary_emails: Option<Vec<AddressText>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Custom field values, keyed by field id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_fields: Option<Stored<AnyObject>>,
    /// When a custom field was last written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_fields_updated_at: Option<Timestamp>,
}

impl From<domain::Contact> for Contact {
    fn from(contact: domain::Contact) -> Self {
        Self {
            id: contact.id.into_string(),
            full_name: contact.full_name,
            first_name: contact.first_name,
            created_at: contact.created_at,
            updated_at: contact.updated_at,
            last_name: contact.last_name,
            email: contact.email.map(AddressText),
            phone: contact.phone,
            secondary_phones: contact.secondary_phones,
            secondary_emails: contact.secondary_emails.map(|all| all.into_iter().map(AddressText).collect()),
            addresses: contact.addresses,
            note: contact.note,
            custom_fields: contact.custom_fields.and_then(Stored::new),
            custom_fields_updated_at: contact.custom_fields_updated_at,
        }
    }
}

/// Filters of the contact list. A member that is `null` does not filter.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields, nullable_all)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContactFilters {
    /// Looked for in names, e-mail addresses, phone numbers and note. Blank does not filter.
    #[oai(validator(max_length = 100))]
    search: Option<String>,
    /// Contacts updated at or after this instant.
    updated_after: Option<Bound>,
    /// Contacts updated before this instant.
    updated_before: Option<Bound>,
}

const MAX_SEARCH_CHARS: usize = 100;

impl ContactFilters {
    fn check(self) -> Result<ContactFilter, ApiError> {
        if self.search.as_ref().is_some_and(|search| search.chars().count() > MAX_SEARCH_CHARS) {
            return Err(ApiError::field("body.search", format!("must be at most {MAX_SEARCH_CHARS} characters long")));
        }
        Ok(ContactFilter {
            search: self.search.map(|search| search.trim().to_owned()).filter(|search| !search.is_empty()),
            updated_after: self.updated_after.map(Bound::at_or_after),
            updated_before: self.updated_before.map(Bound::before),
        })
    }
}

/// Read operations on contacts.
#[derive(Debug)]
pub struct ContactReads;

#[OpenApi(tag = "super::document::Tag::Contacts")]
impl ContactReads {
    /// Get a contact
    ///
    /// Returns one contact of the store.
    #[oai(path = "/contacts", method = "get", operation_id = "getContact")]
    async fn get_contact(
        &self,
        request: Authorised<ContactsRead>,
        /// The contact.
        #[oai(name = "contactId")]
        contact_id: Query<Required<Id<ContactId>>>,
        _expand: NoExpand,
    ) -> Result<Reply<One<Contact>>, Failure<Lookup>> {
        let contact = request.reads().contact(request.store(), &contact_id.0.0.0).await?;
        Ok(Reply::one(&request, contact.into()))
    }

    /// List contacts
    ///
    /// Lists contacts that match the filters, the most recently updated first{by relevance}.
    #[oai(path = "/contacts/list", method = "post", operation_id = "listContacts")]
    async fn list_contacts(
        &self,
        request: Authorised<ContactsRead>,
        filters: FilterBody<ContactFilters>,
        /// Contacts a page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// Where the page begins: `x-pagination-next-cursor` of the page before.
        cursor: Query<CursorText>,
        /// Echoed in `x-pagination-page`; does not move through the collection.
        page: PageParam,
        _expand: NoExpand,
    ) -> Result<Reply<Paged<Contact>>, Failure<FilteredListing>> {
        let opened = OpenedCursor::read(&request, "listContacts", &cursor.0)?;
        let (filters, spelled) = filters.filters()?;
        let filter = filters.check()?;
        let walk = opened.step(&request, page_size.0.0, &page, &spelled)?;
        let contacts = request.reads_many().await?.contacts(request.store(), filter, walk.request()).await?;
        Ok(walk.reply(&request, contacts))
    }

    /// List contact fields
    ///
    /// Lists every contact field definition of the store in display order, without pagination.
    #[oai(path = "/contacts/fields", method = "get", operation_id = "listContactFields")]
    async fn list_contact_fields(
        &self,
        request: Authorised<ContactsRead>,
        _expand: NoExpand,
    ) -> Result<Reply<All<ContactField>>, Failure<Listing>> {
        let fields = request.reads_many().await?.contact_fields(request.store()).await?;
        Ok(Reply::all(&request, fields))
    }
}
