//! Queries for the search index: messages and contacts with the texts that are indexed.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};

use crate::{
    domain::{
        ids::StoreId,
        search::{Searchable, SearchableKind},
        unicode_text::joined_name,
    },
    store::{
        Db, Result,
        change_log::searchable_message::message_texts,
        entity::messages,
        parameterised_sql::{Sql, batches},
        row_decoding::Cells,
    },
};

/// The columns of a message that the search index needs, and the table that contains them. `$1` is the id of the store. [`CONTACTS`] has
/// the same for contacts.
const MESSAGES: (&str, &str) = (
    "id, sent_at, text, payload, (SELECT c.email_subject FROM conversations c WHERE c.store_id = $1 \
     AND c.id = messages.conversation_id)",
    "messages",
);
const CONTACTS: (&str, &str) = ("id, updated_at, full_name, email, phone, secondary_emails, secondary_phones, note", "contacts");

impl Db {
    /// Returns the records of this kind that have one of the ids `ids`.
    pub async fn searchables(&self, store: &StoreId, noun: SearchableKind, ids: &[&str]) -> Result<Vec<Searchable>> {
        let mut found = Vec::with_capacity(ids.len());
        for batch in batches(ids.iter().copied()) {
            let sql = Sql::by_ids(self.backend(), store, parts(noun), batch);
            found.extend(self.read_searchables(store, noun, sql).await?);
        }
        Ok(found)
    }

    /// Returns at most `limit` records of this kind after an id, in the order of ids.
    pub async fn searchables_after(&self, store: &StoreId, noun: SearchableKind, after: &str, limit: usize) -> Result<Vec<Searchable>> {
        let (columns, table) = parts(noun);
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(columns)
            .push(" FROM ")
            .push(table)
            .push(" WHERE store_id = $1 AND id > ")
            .text(after)
            .push(" ORDER BY id")
            .limit(i64::try_from(limit).unwrap_or(i64::MAX));
        self.read_searchables(store, noun, sql).await
    }

    async fn read_searchables(&self, store: &StoreId, noun: SearchableKind, sql: Sql) -> Result<Vec<Searchable>> {
        let store = store.clone();
        self.all(sql, move |cells| {
            let (id, at) = (cells.take()?, cells.take()?);
            let texts = match noun {
                SearchableKind::Message => message_texts(cells.take()?, cells.take::<Option<String>>()?.as_deref(), cells.take()?),
                SearchableKind::Contact => contact_texts(cells)?,
            };
            Ok(Searchable { store: store.clone(), noun, id, at, texts })
        })
        .await
    }

    pub async fn conversation_messages(&self, store: &StoreId, conversation: &str) -> Result<Vec<String>> {
        let query = messages::Entity::find()
            .select_only()
            .column(messages::Column::Id)
            .filter(messages::Column::StoreId.eq(store))
            .filter(messages::Column::ConversationId.eq(conversation));
        self.select(query, |cells| cells.take()).await
    }

    /// Returns the number of searchable records of all stores.
    pub async fn count_searchables(&self) -> Result<u64> {
        let mut sql = Sql::fixed("SELECT (SELECT COUNT(*) FROM messages) + (SELECT COUNT(*) FROM contacts)");
        sql.of_a_table();
        Ok(self.first(sql, |cells| cells.take::<i64>()).await?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
    }
}

fn parts(noun: SearchableKind) -> (&'static str, &'static str) {
    match noun {
        SearchableKind::Message => MESSAGES,
        SearchableKind::Contact => CONTACTS,
    }
}

fn contact_texts(cells: &mut Cells<'_>) -> Result<Vec<String>> {
    let (name, email, phone): (String, Option<String>, Option<String>) = (cells.take()?, cells.take()?, cells.take()?);
    let (emails, phones): (Option<Vec<String>>, Option<Vec<String>>) = (cells.take()?, cells.take()?);
    let note: Option<String> = cells.take()?;
    let several = emails.into_iter().chain(phones).flatten();
    Ok([Some(joined_name(&name)), email, phone].into_iter().flatten().chain(several).chain(note).collect())
}
