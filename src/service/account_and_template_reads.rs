//! Use-cases that read channel accounts and message templates.

use super::{Error, Result, Service};
use crate::domain::{
    ids::{AccountId, StoreId},
    paging::{Page, PageRequest},
    stores_and_accounts::{Account, Channel, Template, TemplateFilter, WHATSAPP},
};

impl Service {
    /// Returns the accounts that are not disconnected, oldest first. With `channel`, only accounts of this channel.
    pub async fn accounts(&self, store: &StoreId, channel: Option<&Channel>, page: PageRequest) -> Result<Page<Account>> {
        Ok(self.db().active_accounts(store, channel, &page).await?)
    }

    /// Returns the message templates of a WhatsApp account that match the filter, ordered by name and then by id, at most
    /// [`MAX_TEMPLATES`](crate::domain::stores_and_accounts::MAX_TEMPLATES). Fails if the account is unknown or of another channel.
    pub async fn templates(&self, store: &StoreId, account: &AccountId, filter: TemplateFilter) -> Result<Vec<Template>> {
        let found = self.db().account(store, account).await?.ok_or_else(|| Error::missing("accountId", "account", account))?;
        if found.channel.as_str() != WHATSAPP {
            return Err(Error::invalid("accountId", format!("must be an account of the channel `{WHATSAPP}`")));
        }
        Ok(self.db().templates(store, account, &filter).await?)
    }
}
