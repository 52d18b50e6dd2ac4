//! Definitions of ticket and contact fields, in display order.

use std::collections::HashMap;

use crate::{
    domain::{
        fields::{Field, Kind, TicketField},
        ids::{FieldId, StoreId},
    },
    store::{
        Db, Result,
        rows::{Cells, Row},
        sql::{Sql, batches},
    },
};

/// What fields are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noun {
    Ticket,
    Contact,
}

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

    /// Of what kind the fields among `ids` are that exist.
    pub async fn kinds_of_ticket_fields(&self, store: &StoreId, ids: Vec<&FieldId>) -> Result<HashMap<FieldId, Kind>> {
        let mut found = HashMap::new();
        for ids in batches(ids.into_iter().map(FieldId::as_str)) {
            let mut sql = Sql::of(store, "SELECT id, display_type, data_type, max_items FROM ticket_fields WHERE store_id = $1 AND id IN ");
            sql.texts(ids);
            let kind =
                |cells: &mut Cells<'_>| Ok((cells.id()?, Kind::of(&cells.take::<String>()?, &cells.take::<String>()?, cells.take()?)));
            found.extend(self.all(sql, kind).await?);
        }
        Ok(found)
    }

    /// Those of the fields that have a pattern.
    pub async fn fields_with_pattern(&self, store: &StoreId, noun: Noun, ids: Vec<&FieldId>) -> Result<Vec<Field>> {
        let table = match noun {
            Noun::Ticket => "ticket_fields",
            Noun::Contact => "contact_fields",
        };
        let mut found = Vec::new();
        for ids in batches(ids.into_iter().map(FieldId::as_str)) {
            let mut sql = Sql::of(store, "SELECT ");
            sql.push(Field::COLUMNS).push(" FROM ").push(table).push(" WHERE store_id = $1 AND regex IS NOT NULL AND id IN ").texts(ids);
            found.extend(self.all(sql, Field::decode).await?);
        }
        Ok(found)
    }

    pub async fn contact_fields(&self, store: &StoreId) -> Result<Vec<Field>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(Field::COLUMNS).push(" FROM contact_fields WHERE store_id = $1 ORDER BY sort_order, id");
        self.all(sql, Field::decode).await
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
            kinds.iter().map(|(id, shown, stored)| (FieldId::from(*id), Kind::of(shown, stored, None))).collect()
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
