//! Channel accounts and message templates; and accounts and conversations as other records refer to them.

use std::collections::HashMap;

use crate::{
    domain::{
        ids::{AccountId, ConversationId, StoreId},
        paging::{Page, PageRequest, Position},
        store::{Account, Channel, ChannelRef, DISCONNECTED, MAX_TEMPLATES, Template, TemplateFilter},
        text::fold,
    },
    store::{
        Db, Result,
        rows::{Cells, Row},
        sql::{Sql, batches},
        statement::pages::Listed,
    },
};

impl Row for Account {
    const COLUMNS: &'static str = "id, channel, name, status, last_authorized_at, metadata, created_at";

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

impl Listed for Account {
    const TABLE: &'static str = "accounts";
    const SORT: &'static str = "created_at";
    const NEWEST_FIRST: bool = false;

    fn position(&self) -> Position {
        Position::new(self.created_at, self.id.as_str())
    }
}

impl Row for Template {
    const COLUMNS: &'static str = "id, account_id, name, parameter_format, language, status, category, components";

    fn decode(cells: &mut Cells<'_>) -> Result<Self> {
        Ok(Self {
            id: cells.id()?,
            account_id: cells.id()?,
            name: cells.take()?,
            parameter_format: cells.take()?,
            language: cells.take()?,
            status: cells.take()?,
            category: cells.take()?,
            components: cells.take()?,
        })
    }
}

impl Db {
    pub async fn account(&self, store: &StoreId, id: &AccountId) -> Result<Option<Account>> {
        self.row_by_id(store, id.as_str()).await
    }

    /// Every account of the store, oldest first.
    pub async fn every_account(&self, store: &StoreId) -> Result<Vec<Account>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(Account::COLUMNS).push(" FROM accounts WHERE store_id = $1 ORDER BY created_at, id");
        self.all(sql, Account::decode).await
    }

    /// A page of the accounts that are not disconnected, oldest first.
    pub async fn active_accounts(&self, store: &StoreId, channel: Option<&Channel>, page: &PageRequest) -> Result<Page<Account>> {
        let mut sql = Sql::of(store, "store_id = $1");
        sql.push(" AND status <> ").text(DISCONNECTED);
        if let Some(channel) = channel {
            sql.push(" AND channel = ").text(channel.as_str());
        }
        self.page(sql, page).await
    }

    /// The first [`MAX_TEMPLATES`] templates of an account by name.
    pub async fn templates(&self, store: &StoreId, account: &AccountId, filter: &TemplateFilter) -> Result<Vec<Template>> {
        let mut sql = Sql::of(store, "SELECT ");
        sql.push(Template::COLUMNS).push(" FROM templates WHERE store_id = $1 AND account_id = ").text(account.as_str());
        for (test, value) in
            [(" AND language = ", &filter.language), (" AND status = ", &filter.status), (" AND category = ", &filter.category)]
        {
            if let Some(value) = value {
                sql.push(test).text(value);
            }
        }
        if let Some(search) = &filter.search {
            sql.push(" AND ");
            self.push_contains(&mut sql, "search_text", &fold(search));
        }
        sql.push(" ORDER BY name, id").limit(MAX_TEMPLATES);
        self.all(sql, Template::decode).await
    }

    /// The accounts among `ids` that exist.
    pub async fn account_refs(&self, store: &StoreId, ids: Vec<&AccountId>) -> Result<HashMap<String, ChannelRef>> {
        let ids = ids.into_iter().map(AccountId::as_str).collect();
        self.channel_refs(store, ("id, name, channel", "accounts"), ids).await
    }

    /// The conversations among `ids` that exist.
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
