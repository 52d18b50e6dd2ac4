//! Queries of contacts: look-ups by id, and pages of the list.

use crate::{
    domain::{
        contacts::{Contact, ContactFilter},
        ids::{ContactId, StoreId},
        paging::{Page, PageRequest, Position},
    },
    store::{
        Db, Result,
        entity::contacts,
        parameterised_sql::Sql,
        row_decoding::{Row, stored_record},
        statement::{
            as_of::{MovingList, MovingRow},
            pages::{PagedRow, count_sql},
        },
        tickets::counters::push_contact_total,
    },
};

stored_record! {
    Contact in contacts:
    id, full_name, first_name, last_name, email, phone, secondary_phones, secondary_emails, addresses, note, custom_fields,
    custom_fields_updated_at, created_at, updated_at
}

impl PagedRow for Contact {
    const SORT: contacts::Column = contacts::Column::UpdatedAt;

    fn position(&self) -> Position {
        Position::new(self.updated_at, self.id.as_str())
    }
}

impl MovingRow for Contact {}

impl Db {
    pub async fn contact(&self, store: &StoreId, id: &ContactId) -> Result<Option<Contact>> {
        self.row_by_id(store, id.as_str()).await
    }

    /// Returns the contacts among `ids` that exist, in any order.
    pub async fn contacts_by_id(&self, store: &StoreId, ids: &[&str]) -> Result<Vec<Contact>> {
        self.rows_by_id(store, ids).await
    }

    /// Returns a page of contacts, most recently updated first. Ignores `filter.search`: a search uses the search index instead
    /// (`service::search`).
    pub async fn contacts(&self, store: &StoreId, filter: &ContactFilter, page: &PageRequest) -> Result<Page<Contact>> {
        let mut conditions = Sql::of(store, "store_id = $1");
        if let Some(from) = filter.updated_after {
            conditions.push(" AND updated_at >= ").integer(from.millis());
        }
        if let Some(before) = filter.updated_before {
            conditions.and_below(page, "updated_at < ", before);
        }
        let counted = count_sql(Contact::table(), conditions.clone());
        let moved = |sql: &mut Sql| {
            sql.push("store_id = $1");
            if let Some(from) = filter.updated_after {
                sql.push(" AND updated_at >= ").integer(from.millis());
            }
            if let Some(before) = filter.updated_before {
                sql.push(" AND updated_at < ").integer(before.millis());
            }
        };
        let list = MovingList { source: Contact::table().into(), conditions, moved: &moved };
        if filter.updated_after.or(filter.updated_before).is_none() {
            return self.page_with_kept_total(list, page, store, push_contact_total).await;
        }
        self.page_with_counted_total(list, page, counted).await
    }
}
