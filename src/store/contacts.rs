//! Contacts: one by id, and the list.

use crate::{
    domain::{
        contacts::{Contact, ContactFilter},
        ids::{ContactId, StoreId},
        paging::{Page, PageRequest, Position},
    },
    store::{
        Db, Result,
        rows::{Cells, Row},
        sql::Sql,
        statement::pages::PagedRow,
        tickets::counters::push_contact_total,
    },
};

impl Row for Contact {
    const COLUMNS: &'static str = "id, full_name, first_name, last_name, email, phone, secondary_phones, secondary_emails, addresses, note, \
         custom_fields, custom_fields_updated_at, created_at, updated_at";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.id()?,
            full_name: cells.take()?,
            first_name: cells.take()?,
            last_name: cells.take()?,
            email: cells.take()?,
            phone: cells.take()?,
            secondary_phones: cells.optional_json()?,
            secondary_emails: cells.optional_json()?,
            addresses: cells.optional_json()?,
            note: cells.take()?,
            custom_fields: cells.take()?,
            custom_fields_updated_at: cells.optional_time()?,
            created_at: cells.time()?,
            updated_at: cells.time()?,
        })
    }
}

impl PagedRow for Contact {
    const TABLE: &'static str = "contacts";
    const SORT: &'static str = "updated_at";

    fn position(&self) -> Position {
        Position::new(self.updated_at, self.id.as_str())
    }
}

impl Db {
    pub async fn contact(&self, store: &StoreId, id: &ContactId) -> Result<Option<Contact>> {
        self.row_by_id(store, id.as_str()).await
    }

    /// The contacts among `ids` that exist, in any order.
    pub async fn contacts_by_id(&self, store: &StoreId, ids: &[&str]) -> Result<Vec<Contact>> {
        self.rows_by_id(store, ids).await
    }

    /// A page of contacts, most recently updated first, whatever `search` says.
    pub async fn contacts(&self, store: &StoreId, filter: &ContactFilter, page: &PageRequest) -> Result<Page<Contact>> {
        let mut sql = Sql::of(store, "store_id = $1");
        if let Some(from) = filter.updated_after {
            sql.push(" AND updated_at >= ").integer(from.millis());
        }
        if let Some(before) = filter.updated_before {
            sql.and_below(page, "updated_at < ", before);
        }
        if filter.updated_after.or(filter.updated_before).is_some() {
            return self.page(sql, page).await;
        }
        self.page_with(&Contact::TABLE.into(), sql, page, store, push_contact_total).await
    }
}
