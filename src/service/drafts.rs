//! Use-cases of drafts. An assistant, which uses an API key, proposes a message as a draft. A user releases (approves and sends), edits or
//! discards the draft.
//!
//! Guarantees: A draft whose message could not be sent is refused when it is made or edited. A draft is released in the transaction that
//! sends its message, so the message is sent at most once. If the contact has written since the draft was made, the user can release the
//! draft only by confirming that the newest message of the contact was read. Lock order: a draft before its conversation.

use serde_json::{Value, json};

use super::{
    Error, Result, Service, WriteContext, WriteOutcome,
    conversation_threads::thread_of,
    write_transaction::{WriteTransaction, begin},
};
use crate::domain::{
    drafts::{DRAFT_KEPT_MILLIS, DRAFT_LIFETIME_MILLIS, Draft, DraftState, MAX_PENDING_DRAFTS, Release},
    events::Actor,
    ids::{ConversationId, DraftId, KeyId, MessageId, StoreId},
    messages::Message,
    paging::PageRequest,
    send_requests::Send,
    settings_access::{Editor, Entry, Subject},
    stores_and_accounts::WHATSAPP,
    tickets::TicketWindow,
};

/// How many of the newest messages of the conversation are shown with a draft.
const MESSAGES_BEFORE: u32 = 20;

/// The maximum number of old drafts that are deleted when a draft is made.
const PRUNED_AT_ONCE: u64 = 50;

/// The request property that contains the id of the draft to release. Errors about the draft itself name this property. All other errors of
/// a release name a property of the draft's message, like the errors of a send.
const RELEASED: &str = "body.draftId";

impl Service {
    /// Stores a draft. Refuses it if its message could not be sent now.
    pub async fn make_draft(
        &self,
        by: &WriteContext<'_, Draft>,
        key_id: &KeyId,
        key_name: &str,
        send: Send,
    ) -> Result<WriteOutcome<Draft>> {
        let rehearsed = self.dry_run(by.store, by.actor.clone(), send.clone()).await;
        let change = begin!(self, by);
        // A refusal is returned only after `begin!`, which returns the stored response of a repeated request. So a repeated request gets
        // its first response even if the message would be refused now.
        rehearsed?;
        let now = change.now();
        change.prune_drafts(now.plus_millis(-DRAFT_KEPT_MILLIS), PRUNED_AT_ONCE).await?;
        let pending = change.count_pending_drafts().await?;
        if pending >= i64::from(MAX_PENDING_DRAFTS) {
            let reason = format!(
                "the store has {pending} drafts that wait for their release, and may have {MAX_PENDING_DRAFTS}; release or discard one"
            );
            return Err(Error::Full(reason));
        }
        let (conversation_id, seen_message_id) = newest_inbound(&change, &send).await?;
        let draft = Draft {
            id: DraftId::from(self.clocks_and_ids().ids.fresh()),
            key_id: key_id.clone(),
            key_name: key_name.to_owned(),
            conversation_id,
            account_id: send.account_id().cloned(),
            seen_message_id,
            send,
            created_at: now,
            updated_at: now,
            expires_at: now.plus_millis(DRAFT_LIFETIME_MILLIS),
            state: DraftState::Pending,
            settled_at: None,
            settled_by: None,
        };
        change.insert_draft(&draft).await?;
        change.finish(by, draft.clone()).await
    }

    /// Returns at most `limit` drafts in a state, the newest first. With `before`, only drafts that follow the draft with this id in the
    /// list. Fails if the store has no draft with this id.
    pub async fn drafts(&self, store: &StoreId, state: DraftState, before: Option<&DraftId>, limit: i64) -> Result<Vec<Draft>> {
        let now = self.clocks_and_ids().now();
        let after = match before {
            Some(id) => {
                let unknown = || Error::invalid("before", "is not the id of a draft of this store; the list begins without it");
                Some(self.db().draft(store, id, now).await?.ok_or_else(unknown)?)
            }
            None => None,
        };
        Ok(self.db().drafts(store, state, after.as_ref(), limit, now).await?)
    }

    pub async fn draft(&self, store: &StoreId, id: &DraftId) -> Result<Draft> {
        self.db().draft(store, id, self.clocks_and_ids().now()).await?.ok_or_else(|| unknown("draftId", id))
    }

    /// Returns at most `MESSAGES_BEFORE` messages of the conversation that a draft goes to, the newest first. If the draft begins a
    /// conversation, there are none.
    pub async fn messages_before_draft(&self, store: &StoreId, id: &DraftId) -> Result<Vec<Message>> {
        let Some(conversation_id) = self.draft(store, id).await?.conversation_id else { return Ok(vec![]) };
        let window = TicketWindow { conversation_id, after: None, until: None };
        let page = PageRequest { size: MESSAGES_BEFORE, after: None, count: false };
        Ok(self.db().messages(store, &window, &page).await?.rows)
    }

    /// Changes the message of a draft. The operation and the recipient must stay the same.
    pub async fn edit_draft(&self, editor: &Editor, id: &DraftId, send: Send) -> Result<Draft> {
        let found = self.draft(&editor.store_id, id).await?;
        must_be_pending("draftId", &found)?;
        must_go_the_same_way(&found.send, &send)?;
        self.dry_run(&editor.store_id, editor.actor(), send.clone()).await?;
        let mut change = self.begin_edit(editor).await?;
        let mut draft = pending(&change, "draftId", id).await?;
        draft.send = send;
        draft.updated_at = change.now();
        change.save_draft(&draft).await?;
        change.audit(entry("draft.edited", &draft));
        change.end().await?;
        Ok(draft)
    }

    /// Sends a draft. `confirmed`: the newest inbound message that the user has read, if the contact wrote after the draft was made.
    pub async fn release_draft(&self, editor: &Editor, id: &DraftId, confirmed: Option<MessageId>) -> Result<Draft> {
        let found = self.db().draft(&editor.store_id, id, self.clocks_and_ids().now()).await?;
        let send = found.ok_or_else(|| unknown(RELEASED, id))?.send;
        let release = Release { draft_id: id.clone(), send: send.clone(), confirmed_message_id: confirmed };
        self.send(&WriteContext::editor(editor).with_draft_release(&release), send).await?;
        self.draft(&editor.store_id, id).await
    }

    pub async fn discard_draft(&self, editor: &Editor, id: &DraftId) -> Result<()> {
        let mut change = self.begin_edit(editor).await?;
        let draft = pending(&change, "draftId", id).await?;
        settle(&mut change, editor, draft, DraftState::Discarded).await?;
        change.end().await
    }

    /// Releases a draft within the transaction of its send.
    pub(super) async fn release_in_transaction(&self, change: &mut WriteTransaction<'_>, release: &Release) -> Result<()> {
        let draft = pending(change, RELEASED, &release.draft_id).await?;
        if draft.send != release.send {
            return Err(Error::conflict(RELEASED, "names a draft that was edited at this moment; read it again"));
        }
        let (_, newest) = newest_inbound(change, &draft.send).await?;
        if let Some(newest) =
            newest.filter(|newest| draft.seen_message_id.as_ref() != Some(newest) && release.confirmed_message_id.as_ref() != Some(newest))
        {
            let reason = format!(
                "names a draft after which the contact wrote message `{newest}`; read it, and release the draft with `confirmedMessageId` of \
                 that message"
            );
            return Err(Error::conflict(RELEASED, reason));
        }
        let editor = change.editor().cloned().ok_or_else(|| Error::Internal("a draft is released without an editor".to_owned()))?;
        settle(change, &editor, draft, DraftState::Released).await
    }

    /// Checks whether a message could be sent: sends it in a transaction that is rolled back.
    pub async fn dry_run(&self, store: &StoreId, actor: Actor, send: Send) -> Result<()> {
        self.send(&WriteContext::alone(store, actor).as_dry_run(), send).await.map(|_| ())
    }
}

/// Returns a draft, locked until the end of the transaction. Refuses a draft that is not pending.
async fn pending(change: &WriteTransaction<'_>, field: &str, id: &DraftId) -> Result<Draft> {
    let draft = change.draft(id).await?.ok_or_else(|| unknown(field, id))?;
    must_be_pending(field, &draft)?;
    Ok(draft)
}

fn unknown(field: &str, id: &DraftId) -> Error {
    Error::missing(field, "draft", id)
}

fn must_be_pending(field: &str, draft: &Draft) -> Result<()> {
    let settled = |how: &str| {
        let at = draft.settled_at.map(|at| format!(" at {at}")).unwrap_or_default();
        let by = draft.settled_by.as_ref().map_or_else(|| "on the command line".to_owned(), |user| format!("by the user `{user}`"));
        format!("names a draft that was {how}{at} {by}")
    };
    let reason = match draft.state {
        DraftState::Pending => return Ok(()),
        DraftState::Released => settled("released"),
        DraftState::Discarded => settled("discarded"),
        DraftState::Expired => format!("names a draft that expired at {}", draft.expires_at),
    };
    Err(Error::conflict(field, reason))
}

/// Refuses an edit that changes the operation of a draft, its conversation, or its account or phone number.
fn must_go_the_same_way(former: &Send, send: &Send) -> Result<()> {
    let differs =
        |member: &str, former: &str| Err(Error::invalid(format!("body.{member}"), format!("must stay `{former}`, as the draft has it")));
    if former.operation() != send.operation() {
        return Err(Error::invalid("body", format!("must be one of `{}`, the operation of the draft", former.operation())));
    }
    match (former.conversation_id(), former.account_id(), former.phone_number()) {
        (Some(id), ..) if send.conversation_id() != Some(id) => differs("conversationId", id.as_str()),
        (_, Some(id), _) if send.account_id() != Some(id) => differs("accountId", id.as_str()),
        (.., Some(phone)) if send.phone_number() != Some(phone) => differs("phoneNumber", phone),
        _ => Ok(()),
    }
}

/// Locks, until the end of the transaction, the conversation that a message goes to, if there is one. Returns the id of this conversation,
/// and of the inbound message that arrived in it last.
async fn newest_inbound(change: &WriteTransaction<'_>, send: &Send) -> Result<(Option<ConversationId>, Option<MessageId>)> {
    let conversation = match send {
        Send::Text { conversation_id, .. } | Send::EmailReply { conversation_id, .. } | Send::TemplateReply { conversation_id, .. } => {
            change.conversation(conversation_id).await?
        }
        Send::TemplateToPhone { account_id, phone_number, .. } => match change.account(account_id).await? {
            Some(account) if account.channel.as_str() == WHATSAPP => thread_of(change, &account, phone_number).await?,
            _ => None,
        },
        Send::EmailNew { .. } => None,
    };
    let Some(conversation) = conversation else { return Ok((None, None)) };
    let newest = change.newest_inbound(&conversation.id).await?;
    Ok((Some(conversation.id), newest))
}

/// Marks a draft as released or discarded. The draft must be locked and pending.
async fn settle(change: &mut WriteTransaction<'_>, editor: &Editor, draft: Draft, state: DraftState) -> Result<()> {
    let settled = Draft { state, settled_at: Some(change.now()), settled_by: editor.user_id.clone(), ..draft };
    change.save_draft(&settled).await?;
    let action = if state == DraftState::Released { "draft.released" } else { "draft.discarded" };
    change.audit(entry(action, &settled));
    Ok(())
}

fn entry(action: &'static str, draft: &Draft) -> Entry {
    let detail: Value = json!({
        "operation": draft.send.operation(), "conversationId": draft.conversation_id, "accountId": draft.account_id, "keyId": draft.key_id,
        "keyName": draft.key_name,
    });
    Entry { action, subject: Subject::Draft, subject_id: draft.id.to_string(), detail }
}
