//! Cache of the conversations that an import has seen recently. It holds the account of each conversation, and whether the conversation is
//! touched: its derived columns have to be computed again at the end of the import. Without the cache, each batch would query these values.
//! Called by `upsert`.

use std::collections::{BTreeSet, HashMap};

use crate::{
    domain::{ids::AccountId, ndjson_records::RecordKind},
    store::{
        Result,
        import::{
            Import,
            bulk_statements::{self, Bulk},
            table, text,
        },
    },
};

/// The most conversations that the cache holds.
const MOST: usize = if cfg!(test) { 2 } else { 100_000 };

/// The cached conversations, by id. All are removed when the cache is full.
#[derive(Default)]
pub(super) struct RecentIds(HashMap<String, RecentId>);

struct RecentId {
    account: AccountId,
    touched: bool,
}

impl RecentIds {
    /// Returns the account of an existing conversation, if the conversation is cached.
    pub fn account(&self, conversation: &str) -> Option<&AccountId> {
        self.0.get(conversation).map(|seen| &seen.account)
    }

    /// Adds the conversations of a batch to the cache, as touched conversations.
    pub fn came(&mut self, conversations: impl ExactSizeIterator<Item = (String, AccountId)>) {
        self.make_room(conversations.len());
        self.0.extend(conversations.map(|(id, account)| (id, RecentId { account, touched: true })));
    }

    fn make_room(&mut self, more: usize) {
        if self.0.len() + more > MOST {
            self.0.clear();
        }
    }

    fn is_touched(&self, conversation: &str) -> bool {
        self.0.get(conversation).is_some_and(|seen| seen.touched)
    }
}

impl Import {
    /// Caches the accounts of the given conversations that exist, in `Import::known`.
    pub(super) async fn cache_accounts(&mut self, conversations: impl Iterator<Item = &str> + Clone) -> Result<()> {
        self.known.make_room(conversations.clone().filter(|id| self.known.account(id).is_none()).count());
        let Bulk { sql, runs } = bulk_statements::among(self.way.backend(), conversations.filter(|id| self.known.account(id).is_none()));
        let sql = format!("SELECT id, account_id FROM conversations WHERE store_id = ? AND id {sql}");
        let found: Vec<(String, AccountId)> = self.of_store(&sql, runs, |cells| Ok((text(cells)?, cells.take()?))).await?;
        self.known.0.extend(found.into_iter().map(|(id, account)| (id, RecentId { account, touched: false })));
        Ok(())
    }

    /// Records conversations as touched: their derived columns are computed again at the end.
    pub(super) async fn touch(&mut self, conversations: impl Iterator<Item = &str>) -> Result<()> {
        let ids: BTreeSet<&str> = conversations.filter(|id| !self.known.is_touched(id)).collect();
        let Bulk { sql, runs } = bulk_statements::rows(self.way.backend(), ids.iter().map(|id| vec![(*id).into()]).collect());
        self.way.run(&format!("INSERT INTO import_touched (id) {sql} ON CONFLICT (id) DO NOTHING"), &[], runs, &[]).await?;
        for id in ids {
            if let Some(seen) = self.known.0.get_mut(id) {
                seen.touched = true;
            }
        }
        Ok(())
    }

    /// Records as touched the conversations that now contain the records with these ids. Called before the batch replaces the records.
    pub(super) async fn touch_former(&self, kind: RecordKind, ids: impl Iterator<Item = &str>) -> Result<()> {
        let Bulk { sql, runs } = bulk_statements::among(self.way.backend(), ids);
        let sql = format!(
            "INSERT INTO import_touched (id) SELECT DISTINCT conversation_id FROM {} WHERE store_id = ? AND id {sql} \
             ON CONFLICT (id) DO NOTHING",
            table(kind)
        );
        self.way.run(&sql, &[self.store.as_str().into()], runs, &[]).await
    }
}
