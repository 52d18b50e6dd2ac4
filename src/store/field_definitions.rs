//! Queries of the definitions of ticket fields and contact fields. The lists of all ticket fields and of all contact fields are in display
//! order.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::{
    domain::{
        custom_fields::{Field, FieldKind, TicketField},
        ids::{FieldId, StoreId},
        time::Timestamp,
    },
    store::{
        Db, Error, Result,
        entity::{contact_field_definitions, ticket_field_definitions},
        parameterised_sql::batches,
        sql_from_entities::model,
        transaction::store_transaction::Write,
    },
};

/// The kind of record that has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOwner {
    Ticket,
    Contact,
}

/// Builds a [`Field`] from a row: the properties that ticket fields and contact fields have in common.
macro_rules! field {
    ($row:expr) => {
        Field {
            id: $row.id.into(),
            name: $row.name,
            display_type: $row.display_type,
            data_type: $row.data_type,
            sort_order: $row.sort_order,
            active: $row.active,
            description: $row.description,
            select_options: $row.select_options,
            regex: $row.regex,
            max_items: $row.max_items,
        }
    };
}

impl From<contact_field_definitions::Model> for Field {
    fn from(row: contact_field_definitions::Model) -> Self {
        field!(row)
    }
}

impl From<ticket_field_definitions::Model> for Field {
    fn from(row: ticket_field_definitions::Model) -> Self {
        field!(row)
    }
}

fn ticket_field(row: ticket_field_definitions::Model) -> Result<TicketField> {
    let account_ids = row.account_ids.as_deref().map(serde_json::from_str).transpose();
    Ok(TicketField {
        is_required: row.is_required,
        show_conditions: row.show_conditions.clone(),
        account_ids: account_ids.map_err(|error| Error::Damaged(error.to_string()))?,
        created_at: Timestamp::from_millis(row.created_at),
        updated_at: Timestamp::from_millis(row.updated_at),
        base: row.into(),
    })
}

impl Db {
    pub async fn ticket_fields(&self, store: &StoreId) -> Result<Vec<TicketField>> {
        let query = ticket_field_definitions::Entity::find()
            .filter(ticket_field_definitions::Column::StoreId.eq(store))
            .order_by_asc(ticket_field_definitions::Column::SortOrder)
            .order_by_asc(ticket_field_definitions::Column::Id);
        self.select(query, model::<ticket_field_definitions::Entity>).await?.into_iter().map(ticket_field).collect()
    }

    /// Returns the kinds of the ticket fields with these ids, by id. A field that does not exist is left out.
    pub async fn kinds_of_ticket_fields(&self, store: &StoreId, ids: Vec<&FieldId>) -> Result<HashMap<FieldId, FieldKind>> {
        let mut found = HashMap::new();
        for ids in batches(ids.into_iter().map(FieldId::as_str)) {
            let query = ticket_field_definitions::Entity::find()
                .filter(ticket_field_definitions::Column::StoreId.eq(store))
                .filter(ticket_field_definitions::Column::Id.is_in(ids));
            let rows = self.select(query, model::<ticket_field_definitions::Entity>).await?;
            found.extend(rows.into_iter().map(|row| (row.id.into(), FieldKind::of(&row.display_type, &row.data_type, row.max_items))));
        }
        Ok(found)
    }

    /// Returns the fields among `ids` whose values must match a regular expression.
    pub async fn fields_with_pattern(&self, store: &StoreId, noun: FieldOwner, ids: Vec<&FieldId>) -> Result<Vec<Field>> {
        /// Reads the definitions of the fields `$ids` from `$table`, except those without a regular expression.
        macro_rules! with_pattern {
            ($table:ident, $ids:expr) => {{
                let query = $table::Entity::find()
                    .filter($table::Column::StoreId.eq(store))
                    .filter($table::Column::Id.is_in($ids))
                    .filter($table::Column::Regex.is_not_null());
                self.select(query, |cells| Ok(model::<$table::Entity>(cells)?.into())).await?
            }};
        }
        let mut found: Vec<Field> = Vec::new();
        for ids in batches(ids.into_iter().map(FieldId::as_str)) {
            found.append(&mut match noun {
                FieldOwner::Ticket => with_pattern!(ticket_field_definitions, ids),
                FieldOwner::Contact => with_pattern!(contact_field_definitions, ids),
            });
        }
        Ok(found)
    }

    pub async fn contact_fields(&self, store: &StoreId) -> Result<Vec<Field>> {
        let query = contact_field_definitions::Entity::find()
            .filter(contact_field_definitions::Column::StoreId.eq(store))
            .order_by_asc(contact_field_definitions::Column::SortOrder)
            .order_by_asc(contact_field_definitions::Column::Id);
        self.select(query, |cells| Ok(model::<contact_field_definitions::Entity>(cells)?.into())).await
    }
}

impl Write {
    pub async fn ticket_field(&self, id: &FieldId) -> Result<Option<Field>> {
        let query = ticket_field_definitions::Entity::find_by_id((self.store().to_string(), id.to_string()));
        Ok(self.select(query, model::<ticket_field_definitions::Entity>).await?.pop().map(Into::into))
    }

    pub async fn contact_field(&self, id: &FieldId) -> Result<Option<Field>> {
        let query = contact_field_definitions::Entity::find_by_id((self.store().to_string(), id.to_string()));
        Ok(self.select(query, model::<contact_field_definitions::Entity>).await?.pop().map(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::store::fixture::{Fixture, counter};

    #[tokio::test]
    async fn kinds_of_fields_are_looked_up_in_one_statement() {
        let (statements, count) = counter();
        let fixture = Fixture::open(Some(count)).await;
        for id in ["size", "when"] {
            let insert = format!(
                "INSERT INTO ticket_fields (store_id, id, name, display_type, data_type, sort_order, is_required, active, created_at, updated_at) \
                 VALUES ('{}', '{id}', '{id}', 'text', 'string', 1, FALSE, TRUE, 0, 0)",
                fixture.store
            );
            fixture.execute(&insert).await.unwrap();
        }
        let (own, other) = (fixture.store.clone(), StoreId::from("another"));
        let find = async |store: &StoreId, ids: &[&str]| {
            let ids: Vec<FieldId> = ids.iter().map(|id| FieldId::from(*id)).collect();
            let before = statements.load(Ordering::Relaxed);
            let mut kinds: Vec<_> = fixture.db.kinds_of_ticket_fields(store, ids.iter().collect()).await.unwrap().into_iter().collect();
            kinds.sort_by(|(one, _), (other, _)| one.cmp(other));
            (kinds, statements.load(Ordering::Relaxed) - before)
        };
        let of = |kinds: &[(&str, &str, &str)]| -> Vec<_> {
            kinds.iter().map(|(id, shown, stored)| (FieldId::from(*id), FieldKind::of(shown, stored, None))).collect()
        };
        let before = of(&[("size", "text", "string"), ("when", "text", "string")]);
        assert_eq!(find(&own, &["size", "when"]).await, (before.clone(), 1));
        assert_eq!(find(&own, &["when"]).await, (before[1..].to_vec(), 1));
        assert_eq!(find(&own, &[]).await, (vec![], 0));
        assert_eq!(find(&own, &["size", "none"]).await, (before[..1].to_vec(), 1), "one of them is unknown");
        assert_eq!(find(&other, &["size", "when"]).await, (vec![], 1), "they are another store's");
        fixture
            .execute(&format!("UPDATE ticket_fields SET display_type = 'integer' WHERE store_id = '{own}' AND id = 'size'"))
            .await
            .unwrap();
        let after = of(&[("size", "integer", "string"), ("when", "text", "string")]);
        assert_eq!(find(&own, &["size", "when"]).await, (after.clone(), 1));
        fixture.execute(&format!("DELETE FROM ticket_fields WHERE store_id = '{own}' AND id = 'size'")).await.unwrap();
        assert_eq!(find(&own, &["size", "when"]).await, (after[1..].to_vec(), 1));
    }
}
