//! Use-cases that read a contact, or list contacts: by filters from the database, or by a search text from the search index.

use super::{Error, Result, Service};
use crate::domain::{
    contacts::{Contact, ContactFilter},
    ids::{ContactId, StoreId},
    paging::{Page, PageRequest},
};

impl Service {
    pub async fn contact(&self, store: &StoreId, id: &ContactId) -> Result<Contact> {
        let found = self.db().contact(store, id).await?;
        found.ok_or_else(|| Error::missing("contactId", "contact", id))
    }

    /// Returns contacts, most recently updated first. If `filter` has a search text and the API revision sets `contacts_by_relevance`, the
    /// best matches come first instead.
    pub async fn contacts(&self, store: &StoreId, filter: ContactFilter, page: PageRequest) -> Result<Page<Contact>> {
        match filter.search {
            Some(_) => self.found_contacts(store, filter, page).await,
            None => Ok(self.db().contacts(store, &filter, &page).await?),
        }
    }
}
