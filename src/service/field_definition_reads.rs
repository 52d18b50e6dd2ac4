//! Use-cases that read the definitions of ticket fields and of contact fields.

use super::{Result, Service};
use crate::domain::{
    custom_fields::{Field, TicketFieldView},
    ids::StoreId,
};

impl Service {
    /// Returns the ticket fields in display order. `with_accounts` adds to each field those of its accounts that exist, in the order in
    /// which the field names them.
    pub async fn ticket_fields(&self, store: &StoreId, with_accounts: bool) -> Result<Vec<TicketFieldView>> {
        let fields = self.db().ticket_fields(store).await?;
        if !with_accounts {
            return Ok(fields.into_iter().map(|field| TicketFieldView { field, accounts: None }).collect());
        }
        let known = self.db().account_refs(store, fields.iter().flat_map(|field| field.account_ids.iter().flatten()).collect()).await?;
        let view = |field: crate::domain::custom_fields::TicketField| {
            let accounts = field.account_ids.iter().flatten().filter_map(|id| known.get(id.as_str()).cloned()).collect();
            TicketFieldView { field, accounts: Some(accounts) }
        };
        Ok(fields.into_iter().map(view).collect())
    }

    /// Returns contact fields in display order.
    pub async fn contact_fields(&self, store: &StoreId) -> Result<Vec<Field>> {
        Ok(self.db().contact_fields(store).await?)
    }
}
