//! Use-cases that change conversations: mark as read, change labels, add comments (API contract, section 4.3).

use std::collections::{HashMap, HashSet};

use super::{Error, Result, Service, WriteContext, WriteOutcome, write_transaction::begin};
use crate::domain::{
    events::EventChange,
    ids::{CommentId, ConversationId, LabelId, UserId},
    messages::Comment,
};

/// Labels to add and to remove.
#[derive(Debug)]
pub struct LabelUpdate {
    pub conversation_id: ConversationId,
    pub add: Vec<LabelId>,
    pub remove: Vec<LabelId>,
}

impl Service {
    /// Sets the unread count of a conversation to 0. Fails if the conversation has no open ticket.
    pub async fn mark_conversation_read(&self, by: &WriteContext<'_, ()>, id: ConversationId) -> Result<WriteOutcome<()>> {
        let change = begin!(self, by);
        let mut conversation = change.conversation(&id).await?.ok_or_else(|| Error::missing("body.conversationId", "conversation", &id))?;
        if !change.has_open_ticket(&id).await? {
            return Err(Error::not_found("body.conversationId", format!("the conversation `{id}` has no open ticket")));
        }
        if conversation.unread_count != 0 {
            conversation.unread_count = 0;
            conversation.updated_at = change.now().max(conversation.updated_at);
            change.save_unread_count(&conversation).await?;
        }
        change.finish(by, ()).await
    }

    /// Adds and removes labels. Ignores a label to add that is already present, and a label to remove that is absent.
    pub async fn update_conversation_labels(&self, by: &WriteContext<'_, ()>, update: LabelUpdate) -> Result<WriteOutcome<()>> {
        if let Some(i) = update.remove.iter().position(|id| update.add.contains(id)) {
            return Err(Error::invalid(format!("body.removeLabels[{i}]"), "is also in `addLabels`"));
        }
        let mut change = begin!(self, by);
        let id = &update.conversation_id;
        let mut conversation = change.conversation(id).await?.ok_or_else(|| Error::missing("body.conversationId", "conversation", id))?;
        change.lock_tickets_of(id).await?;
        let named: Vec<&LabelId> = update.add.iter().chain(&update.remove).collect();
        let texts: HashMap<LabelId, String> = change.label_texts(&named).await?.into_iter().collect();
        if self.rules().unknown_labels_refused {
            for (list, ids) in [("addLabels", &update.add), ("removeLabels", &update.remove)] {
                if let Some(i) = ids.iter().position(|id| !texts.contains_key(id)) {
                    return Err(Error::invalid(format!("body.{list}[{i}]"), "is not a label of this store"));
                }
            }
        }
        let mut present: HashSet<LabelId> = conversation.label_ids.iter().cloned().collect();
        let added: Vec<LabelId> = update.add.into_iter().filter(|id| texts.contains_key(id) && present.insert(id.clone())).collect();
        let removed: Vec<LabelId> = update.remove.into_iter().filter(|id| present.remove(id)).collect();
        if !added.is_empty() || !removed.is_empty() {
            conversation.label_ids.retain(|id| !removed.contains(id));
            conversation.label_ids.extend(added.iter().cloned());
            conversation.updated_at = change.now().max(conversation.updated_at);
            for label in &added {
                change.add_label(&conversation.id, label).await?;
            }
            for label in &removed {
                change.remove_label(&conversation.id, label).await?;
            }
            change.save_labels(&conversation).await?;
        }
        for label_id in added {
            let label = texts.get(&label_id).cloned();
            change.note(EventChange::LabelAdded { conversation: conversation.clone(), label_id, label });
        }
        for label_id in removed {
            let label = texts.get(&label_id).cloned();
            change.note(EventChange::LabelRemoved { conversation: conversation.clone(), label_id, label });
        }
        change.finish(by, ()).await
    }

    /// Adds a note that the customer does not see. `author`: the user of the API key; `None` stands for the store's oldest owner.
    pub async fn add_internal_comment(
        &self,
        by: &WriteContext<'_, ()>,
        id: ConversationId,
        text: String,
        author: Option<UserId>,
    ) -> Result<WriteOutcome<()>> {
        let change = begin!(self, by);
        if change.conversation(&id).await?.is_none() {
            return Err(Error::missing("body.conversationId", "conversation", &id));
        }
        let author = match author {
            Some(author) => author,
            None => change.oldest_owner().await?.ok_or_else(|| {
                Error::invalid("x-api-key", "acts for no user, and the store has no owner; make a key with `key create --user`")
            })?,
        };
        let now = change.now();
        let comment = Comment {
            id: CommentId::from(self.clocks_and_ids().ids.fresh()),
            conversation_id: id,
            // The account is not stored: the account of a comment is that of its conversation.
            account_id: String::new().into(),
            text,
            created_by: author,
            sent_at: now,
            created_at: now,
            updated_at: now,
        };
        change.insert_comment(&comment).await?;
        change.finish(by, ()).await
    }
}
