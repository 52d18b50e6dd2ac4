//! Use-cases that list undelivered messages, and retry one at a user's request. A message is undelivered if it waits for an attempt to send
//! it, or if it has failed and is not retried any more (dead letter).

use serde_json::json;

use super::{Error, Result, Service, write_transaction::WriteTransaction};
use crate::domain::{
    ids::{MessageId, StoreId},
    inbound_messages::is_mail,
    outbound_messages::{Content, Delivery, OutboxEntry, text_kind},
    settings_access::{Editor, Entry, Subject},
    undelivered_messages::UndeliveredMessage,
};

/// The request property with the id of the message to retry. Errors name this property.
const RETRIED: &str = "messageId";

impl Service {
    /// Returns at most `limit` messages whose delivery is in the state `state` (pending or failed). Pending messages are sorted by the time
    /// at which they were queued, failed messages by the time at which they failed, the newest first. With `after`, only messages that
    /// follow this message in the list. Fails if `after` is not in the list.
    pub async fn undelivered(
        &self,
        store: &StoreId,
        state: Delivery,
        after: Option<&MessageId>,
        limit: u64,
    ) -> Result<Vec<UndeliveredMessage>> {
        let found = match state {
            Delivery::Pending => self.db().pending_messages(store, after, limit).await?,
            Delivery::Failed => self.db().failed_messages(store, after, limit).await?,
            Delivery::Sent => None,
        };
        found.ok_or_else(|| Error::not_found("before", "no message in this list has this id; the list begins without it"))
    }

    /// Returns every undelivered message of a store, the oldest first.
    pub async fn all_undelivered(&self, store: &StoreId) -> Result<Vec<UndeliveredMessage>> {
        let everything = i64::MAX.cast_unsigned();
        let mut all = self.undelivered(store, Delivery::Failed, None, everything).await?;
        all.extend(self.undelivered(store, Delivery::Pending, None, everything).await?);
        all.sort_by(|a, b| (a.sent_at, &a.message_id).cmp(&(b.sent_at, &b.message_id)));
        Ok(all)
    }

    /// Retries a message. A failed message is queued again. For a pending message, the next attempt becomes due now. The attempts of the
    /// earlier messages of its conversation become due, too, since the messages of a conversation are sent in order. An attempt in progress
    /// is not repeated.
    pub async fn retry_message(&self, editor: &Editor, id: &MessageId) -> Result<()> {
        let mut change = self.begin_edit(editor).await?;
        let former = if let Some(hastened) = change.make_message_due(id).await? {
            hastened.then_some(Delivery::Pending)
        } else if let Some(outbox_entry) = change.take_failed_message(id).await? {
            self.requeue_message(&mut change, outbox_entry).await?;
            Some(Delivery::Failed)
        } else if change.make_message_due(id).await?.is_some() {
            // A concurrent request has just queued the message again, so this request is not audited.
            None
        } else {
            return Err(refusal(&change, id).await?);
        };
        if let Some(former) = former {
            change.audit(Entry {
                action: "message.retried",
                subject: Subject::Message,
                subject_id: id.to_string(),
                detail: json!({ "former": former.as_str() }),
            });
        }
        change.end().await
    }

    async fn requeue_message(&self, change: &mut WriteTransaction<'_>, mut outbox_entry: OutboxEntry) -> Result<()> {
        // Some channels permit free text only for some time after the contact's last message. So whether the channel permits this text is
        // checked again. An e-mail or a template is permitted at any time.
        if matches!(outbox_entry.content, Content::Text(_)) && !is_mail(outbox_entry.channel.as_str()) {
            let conversation = change.conversation(&outbox_entry.conversation_id).await?;
            let conversation =
                conversation.ok_or_else(|| Error::Internal(format!("message {} has no conversation", outbox_entry.message_id)))?;
            let kind = text_kind(outbox_entry.channel.as_str(), conversation.last_inbound_at, change.now())
                .map_err(|closed| Error::conflict(RETRIED, format!("names a message in {}", self.closed(closed))))?;
            outbox_entry.kind = kind.map(str::to_owned);
        }
        change.save_requeued(&outbox_entry).await?;
        Ok(change.dispatch(&outbox_entry)?)
    }
}

/// Returns the error that explains why a message cannot be sent again.
async fn refusal(change: &WriteTransaction<'_>, id: &MessageId) -> Result<Error> {
    let state = change.delivery(id).await?.ok_or_else(|| Error::missing(RETRIED, "message", id))?;
    Ok(Error::conflict(
        RETRIED,
        match state {
            Some(Delivery::Failed) => "names a message of which this server no longer has what a retry needs; write it anew",
            Some(Delivery::Sent) => "names a message that its channel has accepted",
            Some(Delivery::Pending) => "names a message that is being sent",
            None => "names a message that this server did not send",
        },
    ))
}
