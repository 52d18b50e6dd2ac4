//! Use-cases that read conversations, and that look up the account and the contact name of given conversations.

use std::collections::{HashMap, HashSet};

use super::{Error, Result, Service};
use crate::domain::{
    conversations::{Conversation, ConversationView, Destination},
    ids::{ContactId, ConversationId, StoreId},
    paging::{Page, PageRequest},
};

impl Service {
    /// Returns the account and the contact name of each conversation in `ids` that exists.
    pub async fn destinations<'i>(
        &self,
        store: &StoreId,
        ids: impl Iterator<Item = &'i ConversationId>,
    ) -> Result<HashMap<ConversationId, Destination>> {
        let ids: HashSet<&ConversationId> = ids.collect();
        Ok(self.db().destinations(store, &ids.into_iter().collect::<Vec<_>>()).await?)
    }

    /// With a conversation id, returns that conversation as a page of one item. With a contact id, returns the contact's conversations, the
    /// one with the newest last message first. With both ids, returns the conversation if it belongs to the contact.
    pub async fn conversations(
        &self,
        store: &StoreId,
        conversation: Option<&ConversationId>,
        contact: Option<&ContactId>,
        page: PageRequest,
        with_account: bool,
    ) -> Result<Page<ConversationView>> {
        let Page { rows, next, total } = match (conversation, contact) {
            (Some(id), contact) => {
                let found = self.db().conversation(store, id).await?;
                let row = found.ok_or_else(|| Error::missing("conversationId", "conversation", id))?;
                if contact.is_some_and(|contact| *contact != row.contact_id) {
                    return Err(Error::missing("conversationId", "conversation of that contact", id));
                }
                Page { rows: vec![row], next: None, total: page.count.then_some(1) }
            }
            (None, Some(contact)) => {
                let rows = self.db().conversations_of_contact(store, contact, &page).await?;
                if rows.rows.is_empty() {
                    self.contact(store, contact).await?;
                }
                rows
            }
            (None, None) => return Err(Error::invalid("conversationId", "or `contactId` must be sent")),
        };
        let accounts = match with_account {
            true => self.db().account_refs(store, rows.iter().map(|row| &row.account_id).collect()).await?,
            false => HashMap::new(),
        };
        let view = |conversation: Conversation| ConversationView {
            account: accounts.get(conversation.account_id.as_str()).cloned(),
            conversation,
        };
        Ok(Page { rows: rows.into_iter().map(view).collect(), next, total })
    }
}
