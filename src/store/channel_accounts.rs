//! Queries of channel accounts and message templates, and of references to accounts and conversations (`ChannelRef`: id, name and channel),
//! which other records contain.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::{
    domain::{
        ids::{AccountId, ConversationId, StoreId, TemplateId},
        paging::{Page, PageRequest, Position},
        stores_and_accounts::{Account, Channel, ChannelRef, DISCONNECTED, MAX_TEMPLATES, Template, TemplateFilter},
        time::Timestamp,
        unicode_text::fold,
    },
    store::{
        Db, Result,
        entity::{accounts, templates},
        parameterised_sql::{Sql, batches},
        row_decoding::{Cells, Row, columns},
        sql_from_entities::model,
        statement::pages::PagedRow,
        transaction::store_transaction::Write,
    },
};

impl Row for Account {
    type Entity = accounts::Entity;

    fn columns() -> &'static str {
        columns!(accounts: Id, Channel, Name, Status, LastAuthorizedAt, Metadata, CreatedAt)
    }

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.id()?,
            channel: Channel(cells.take()?),
            name: cells.take()?,
            status: cells.take()?,
            last_authorized_at: cells.optional_time()?,
            metadata: cells.take()?,
            created_at: cells.time()?,
        })
    }
}

impl PagedRow for Account {
    const SORT: accounts::Column = accounts::Column::CreatedAt;
    const NEWEST_FIRST: bool = false;

    fn position(&self) -> Position {
        Position::new(self.created_at, self.id.as_str())
    }
}

impl From<accounts::Model> for Account {
    fn from(row: accounts::Model) -> Self {
        Self {
            id: row.id.into(),
            channel: Channel(row.channel),
            name: row.name,
            status: row.status,
            last_authorized_at: row.last_authorized_at.map(Timestamp::from_millis),
            metadata: row.metadata,
            created_at: Timestamp::from_millis(row.created_at),
        }
    }
}

impl From<templates::Model> for Template {
    fn from(row: templates::Model) -> Self {
        Self {
            id: row.id.into(),
            account_id: row.account_id.into(),
            name: row.name,
            parameter_format: row.parameter_format,
            language: row.language,
            status: row.status,
            category: row.category,
            components: row.components,
        }
    }
}

impl Write {
    pub async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
        let query = accounts::Entity::find().filter(accounts::Column::StoreId.eq(self.store())).filter(accounts::Column::Id.eq(id));
        Ok(self.select(query, model::<accounts::Entity>).await?.pop().map(Into::into))
    }

    pub async fn template(&self, id: &TemplateId) -> Result<Option<Template>> {
        let query = templates::Entity::find().filter(templates::Column::StoreId.eq(self.store())).filter(templates::Column::Id.eq(id));
        Ok(self.select(query, model::<templates::Entity>).await?.pop().map(Into::into))
    }
}

impl Db {
    pub async fn account(&self, store: &StoreId, id: &AccountId) -> Result<Option<Account>> {
        self.row_by_id(store, id.as_str()).await
    }

    /// Returns every account of the store, oldest first.
    pub async fn every_account(&self, store: &StoreId) -> Result<Vec<Account>> {
        let query = accounts::Entity::find()
            .filter(accounts::Column::StoreId.eq(store))
            .order_by_asc(accounts::Column::CreatedAt)
            .order_by_asc(accounts::Column::Id);
        self.select(query, |cells| Ok(model::<accounts::Entity>(cells)?.into())).await
    }

    /// Returns a page of the accounts that are not disconnected, oldest first.
    pub async fn active_accounts(&self, store: &StoreId, channel: Option<&Channel>, page: &PageRequest) -> Result<Page<Account>> {
        let mut sql = Sql::of(store, "store_id = $1");
        sql.push(" AND status <> ").text(DISCONNECTED);
        if let Some(channel) = channel {
            sql.push(" AND channel = ").text(channel.as_str());
        }
        self.page(sql, page).await
    }

    /// Returns the first [`MAX_TEMPLATES`] templates of an account that match the filter, in the order of names.
    pub async fn templates(&self, store: &StoreId, account: &AccountId, filter: &TemplateFilter) -> Result<Vec<Template>> {
        let contains = filter.search.as_ref().map(|search| self.contains(templates::Column::SearchText, fold(search)));
        let query = templates::Entity::find()
            .filter(templates::Column::StoreId.eq(store))
            .filter(templates::Column::AccountId.eq(account))
            .apply_if(filter.language.as_ref(), |query, language| query.filter(templates::Column::Language.eq(language)))
            .apply_if(filter.status.as_ref(), |query, status| query.filter(templates::Column::Status.eq(status)))
            .apply_if(filter.category.as_ref(), |query, category| query.filter(templates::Column::Category.eq(category)))
            .apply_if(contains, QueryFilter::filter)
            .order_by_asc(templates::Column::Name)
            .order_by_asc(templates::Column::Id)
            .limit(MAX_TEMPLATES);
        self.scan(query, |cells| Ok(model::<templates::Entity>(cells)?.into())).await
    }

    /// Returns references to these accounts, keyed by account id. An account that does not exist is left out.
    pub async fn account_refs(&self, store: &StoreId, ids: Vec<&AccountId>) -> Result<HashMap<String, ChannelRef>> {
        let ids = ids.into_iter().map(AccountId::as_str).collect();
        self.channel_refs(store, ("id, name, channel", "accounts"), ids).await
    }

    /// Returns references to these conversations, keyed by conversation id. A conversation that does not exist is left out.
    pub async fn conversation_refs(&self, store: &StoreId, ids: Vec<&ConversationId>) -> Result<HashMap<String, ChannelRef>> {
        let ids = ids.into_iter().map(ConversationId::as_str).collect();
        self.channel_refs(store, ("id, display_name, channel", "conversations"), ids).await
    }

    async fn channel_refs(&self, store: &StoreId, from: (&str, &str), ids: Vec<&str>) -> Result<HashMap<String, ChannelRef>> {
        let mut refs = HashMap::new();
        for ids in batches(ids) {
            let sql = Sql::by_ids(self.backend(), store, from, ids);
            let rows =
                self.all(sql, |cells| Ok(ChannelRef { id: cells.take()?, name: cells.take()?, channel: Channel(cells.take()?) })).await?;
            refs.extend(rows.into_iter().map(|row| (row.id.clone(), row)));
        }
        Ok(refs)
    }
}
