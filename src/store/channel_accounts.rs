//! Queries of channel accounts and message templates, and of references to accounts and conversations (`ChannelRef`: id, name and channel),
//! which other records contain.

use std::collections::HashMap;

use sea_orm::{ColumnTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait};

use crate::{
    domain::{
        ids::{AccountId, ConversationId, StoreId, TemplateId},
        paging::{Page, PageRequest, Position},
        stores_and_accounts::{Account, Channel, ChannelRef, DISCONNECTED, MAX_TEMPLATES, Template, TemplateFilter},
        unicode_text::fold,
    },
    store::{
        Db, Result,
        entity::{accounts, templates},
        parameterised_sql::{Sql, batches},
        row_decoding::{Row, stored_record},
        sql_from_entities::find,
        statement::pages::PagedRow,
        transaction::store_transaction::Write,
    },
};

stored_record! {
    Account in accounts: id, channel, name, status, last_authorized_at, metadata, created_at
}

impl PagedRow for Account {
    const SORT: accounts::Column = accounts::Column::CreatedAt;
    const NEWEST_FIRST: bool = false;

    fn position(&self) -> Position {
        Position::new(self.created_at, self.id.as_str())
    }
}

stored_record! {
    Template in templates: id, account_id, name, parameter_format, language, status, category, components
}

impl Write {
    pub async fn account(&self, id: &AccountId) -> Result<Option<Account>> {
        self.first(self.by_id::<Account>(id.as_str()), Account::decode).await
    }

    pub async fn template(&self, id: &TemplateId) -> Result<Option<Template>> {
        self.first(self.by_id::<Template>(id.as_str()), Template::decode).await
    }
}

impl Db {
    pub async fn account(&self, store: &StoreId, id: &AccountId) -> Result<Option<Account>> {
        self.row_by_id(store, id.as_str()).await
    }

    /// Returns every account of the store, oldest first.
    pub async fn every_account(&self, store: &StoreId) -> Result<Vec<Account>> {
        use accounts::Column::{CreatedAt, Id, StoreId};
        let query = find::<Account>().filter(StoreId.eq(store)).order_by_asc(CreatedAt).order_by_asc(Id);
        self.select(query, Account::decode).await
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
        let query = find::<Template>()
            .filter(templates::Column::StoreId.eq(store))
            .filter(templates::Column::AccountId.eq(account))
            .apply_if(filter.language.as_ref(), |query, language| query.filter(templates::Column::Language.eq(language)))
            .apply_if(filter.status.as_ref(), |query, status| query.filter(templates::Column::Status.eq(status)))
            .apply_if(filter.category.as_ref(), |query, category| query.filter(templates::Column::Category.eq(category)))
            .apply_if(contains, QueryFilter::filter)
            .order_by_asc(templates::Column::Name)
            .order_by_asc(templates::Column::Id)
            .limit(MAX_TEMPLATES);
        self.scan(query, Template::decode).await
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
