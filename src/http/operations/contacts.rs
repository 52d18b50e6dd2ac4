//! Contact operations: the schema of a contact, the list filters, and the handlers for contacts and contact fields (API contract, sections
//! 2.6, 2.7 and 4.1).

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use crate::{
    domain::{
        contacts as domain,
        contacts::ContactFilter,
        ids::ContactId,
        time::{Bound, Timestamp},
    },
    http::{
        machinery::{
            auth::{Authorised, ContactsRead, ContactsWrite},
            body::{Body, FilterBody},
            error_responses::{ApiError, ContactMaking, Failure, FilteredListing, Listing, Lookup, StampedChange},
            expand_parameter::NoExpand,
            idempotency::{Acknowledgement, IdempotencyKey},
            paging::{OpenedCursor, Paged},
            params::{CursorText, Id, PageSize, Query, Required},
            success_responses::{All, One, Reply},
        },
        schemas::{
            field_definitions::ContactField,
            value_types::{AddressText, AnyObject, StoredJson},
            write_inputs::{ContactCreation, ContactFieldInput},
        },
    },
    revision::wire::PageParam,
};

/// A contact of the store.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct Contact {
    /// Identifies the contact: the value of `contactId` in requests, conversations and tickets.
    pub id: String,
    /// The display name. On contacts that this server created: `firstName`, then a space and `lastName` if there is one.
    pub full_name: String,
    /// The given name. If the channel provides none, it is the first of these that is known: the sender's display name, the family name,
    /// the e-mail address up to `@`, the phone number, the sender's id on the channel.
    pub first_name: String,
    /// When the contact was created, by a request or with a first message.
    pub created_at: Timestamp,
    /// When the contact or one of its custom fields last changed; messages do not change this time.
    pub updated_at: Timestamp,
    /// The family name; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_name: Option<String>,
    /// The primary e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<AddressText>,
    /// The primary phone number, in E.164.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// Further phone numbers besides the primary one in `phone`. They are not unique: other contacts may have the same ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary_phones: Option<Vec<String>>,
    /// Further e-mail addresses besides the primary one in `email`. They are not unique: other contacts may have the same ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secondary_emails: Option<Vec<AddressText>>,
    /// Postal addresses of the contact, each as one string; absent if none is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Vec<String>>,
    /// A free-text note about the contact; absent if there is none. The contact search covers it. Only an import sets it; no operation
    /// of this API changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Custom field values, keyed by field id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_fields: Option<StoredJson<AnyObject>>,
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
            custom_fields: contact.custom_fields.and_then(StoredJson::new),
            custom_fields_updated_at: contact.custom_fields_updated_at,
        }
    }
}

/// Filters of the contact list. A member that is `null` does not filter.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields, nullable_all)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContactFilters {
    /// Text to search for in names, e-mail addresses, phone numbers and the note. A blank text does not filter.
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

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Contacts")]
impl ContactReads {
    /// Get a contact
    ///
    /// Returns one contact of the store.
    #[oai(path = "/contacts", method = "get", operation_id = "getContact")]
    async fn get_contact(
        &self,
        request: Authorised<ContactsRead>,
        /// The contact to return.
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
    // `openapi::document_post_processing` replaces `{by relevance}` by the text for the revision of the contract (A or B) that this build
    // serves.
    #[oai(path = "/contacts/list", method = "post", operation_id = "listContacts")]
    async fn list_contacts(
        &self,
        request: Authorised<ContactsRead>,
        filters: FilterBody<ContactFilters>,
        /// Contacts per page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        /// A page number that the answer repeats in `x-pagination-page`. It does not select records; `cursor` does.
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

/// Write operations on contacts.
#[derive(Debug)]
pub struct ContactWrites;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Contacts")]
impl ContactWrites {
    /// Create a contact
    ///
    /// Creates a contact. No two contacts of a store have the same primary e-mail or phone.
    #[oai(path = "/contacts", method = "post", operation_id = "createContact")]
    async fn create_contact(
        &self,
        request: Authorised<ContactsWrite>,
        body: Body<ContactCreation>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Contact>>, Failure<ContactMaking>> {
        let new = body.parse()?.check()?;
        let by = request.by::<domain::Contact, Contact, _, _>("createContact", &key, &body);
        let outcome = request.state.service.create_contact(&by, new).await?;
        Ok(Reply::written::<_, Contact>(&request, outcome))
    }

    /// Update a contact field
    ///
    /// Sets or unsets one custom field of a contact. If `updatedAt` is out of date, nothing is written and the answer is 409.
    #[oai(path = "/contacts/field-values", method = "patch", operation_id = "updateContactField")]
    async fn update_contact_field(
        &self,
        request: Authorised<ContactsWrite>,
        body: Body<ContactFieldInput>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
        _expand: NoExpand,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<StampedChange>> {
        let update = body.parse()?;
        let by = request.by::<(), Acknowledgement, _, _>("updateContactField", &key, &body);
        let outcome = request.state.service.update_contact_field(&by, update.into()).await?;
        Ok(Reply::written::<_, Acknowledgement>(&request, outcome))
    }
}
