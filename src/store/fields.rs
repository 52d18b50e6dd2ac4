//! Definitions of ticket and contact fields, in display order.

use super::{
    Db, Result,
    sql::{Cells, Row, Sql, batches},
};
use crate::domain::{
    fields::{Field, TicketField},
    ids::{FieldId, StoreId},
};

impl Row for Field {
    const COLUMNS: &'static str = "id, name, display_type, data_type, sort_order, active, description, select_options, regex, max_items";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.id()?,
            name: cells.take()?,
            display_type: cells.take()?,
            data_type: cells.take()?,
            sort_order: cells.take()?,
            active: cells.take()?,
            description: cells.take()?,
            select_options: cells.take()?,
            regex: cells.take()?,
            max_items: cells.take()?,
        })
    }
}

impl Row for TicketField {
    const COLUMNS: &'static str = "id, name, display_type, data_type, sort_order, active, description, select_options, regex, max_items, \
         is_required, show_conditions, account_ids, created_at, updated_at";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            base: Field::decode(cells)?,
            is_required: cells.take()?,
            show_conditions: cells.take()?,
            account_ids: cells.optional_json()?,
            created_at: cells.time()?,
            updated_at: cells.time()?,
        })
    }
}

impl Db {
    pub async fn ticket_fields(&self, store: &StoreId) -> Result<Vec<TicketField>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(TicketField::COLUMNS).push(" FROM ticket_fields WHERE store_id = $1 ORDER BY sort_order, id");
        self.all(sql, TicketField::decode).await
    }

    /// The definitions among `ids` that exist, in any order.
    pub async fn ticket_fields_by_id(&self, store: &StoreId, ids: Vec<&FieldId>) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        for ids in batches(ids.into_iter().map(FieldId::as_str)) {
            let mut sql = Sql::of(store, "SELECT ");
            sql.push(Field::COLUMNS).push(" FROM ticket_fields WHERE store_id = $1 AND id IN ").texts(ids);
            fields.append(&mut self.all(sql, Field::decode).await?);
        }
        Ok(fields)
    }

    pub async fn contact_fields(&self, store: &StoreId) -> Result<Vec<Field>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(Field::COLUMNS).push(" FROM contact_fields WHERE store_id = $1 ORDER BY sort_order, id");
        self.all(sql, Field::decode).await
    }
}
