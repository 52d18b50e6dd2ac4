//! Queries of drafts (messages that wait for a user's approval), and of the newest inbound message of a conversation. A draft stores which
//! inbound message was the newest when the draft was written. If the customer has written again since then, the user who releases the
//! draft has to confirm that the new message was read.

use sea_orm::{
    ActiveValue::{NotSet, Set},
    ColumnTrait, Condition, EntityTrait, QueryFilter, QueryOrder, QuerySelect, QueryTrait,
    sea_query::{Expr, Func, Query},
};

use crate::{
    domain::{
        drafts::{Draft, DraftState},
        ids::{ConversationId, DraftId, MessageId, StoreId, UserId},
        send_requests::Send,
        time::Timestamp,
    },
    store::{
        Db, Error, Result,
        entity::{drafts, messages},
        sql_from_entities::{among, model},
        transaction::store_transaction::Write,
    },
};

/// [`Write::newest_inbound`] searches this number of inbound messages, those with the latest dates, for the message that was received last.
/// The message that was received last need not have the latest date: a channel may deliver a message late.
const NEWEST_INBOUND_CANDIDATES: u64 = 200;

fn draft(row: drafts::Model, now: Timestamp) -> Result<Draft> {
    let expires_at = Timestamp::from_millis(row.expires_at);
    Ok(Draft {
        id: row.id.into(),
        key_id: row.key_id.into(),
        key_name: row.key_name,
        send: serde_json::from_str(&row.content).map_err(|error| Error::Damaged(error.to_string()))?,
        conversation_id: row.conversation_id.map(Into::into),
        account_id: row.account_id.map(Into::into),
        seen_message_id: row.seen_message_id.map(Into::into),
        created_at: Timestamp::from_millis(row.created_at),
        updated_at: Timestamp::from_millis(row.updated_at),
        expires_at,
        state: DraftState::of(&row.state, expires_at, now),
        settled_at: row.settled_at.map(Timestamp::from_millis),
        settled_by: row.settled_by.map(Into::into),
    })
}

fn content(send: &Send) -> Result<String> {
    serde_json::to_string(send).map_err(|error| Error::Damaged(error.to_string()))
}

/// Returns the condition for the drafts of a store that are in a state at the time `now`.
fn in_state(store: &StoreId, state: DraftState, now: Timestamp) -> Condition {
    let stored = Condition::all().add(drafts::Column::StoreId.eq(store)).add(drafts::Column::State.eq(state.stored()));
    match state {
        DraftState::Pending => stored.add(drafts::Column::ExpiresAt.gt(now)),
        DraftState::Expired => stored.add(drafts::Column::ExpiresAt.lte(now)),
        DraftState::Released | DraftState::Discarded => stored,
    }
}

impl Write {
    pub async fn insert_draft(&self, draft: &Draft) -> Result<()> {
        self.insert(drafts::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(draft.id.to_string()),
            key_id: Set(draft.key_id.to_string()),
            key_name: Set(draft.key_name.clone()),
            operation: Set(draft.send.operation().to_owned()),
            content: Set(content(&draft.send)?),
            conversation_id: Set(draft.conversation_id.as_ref().map(ToString::to_string)),
            account_id: Set(draft.account_id.as_ref().map(ToString::to_string)),
            seen_message_id: Set(draft.seen_message_id.as_ref().map(ToString::to_string)),
            created_at: Set(draft.created_at.millis()),
            updated_at: Set(draft.updated_at.millis()),
            expires_at: Set(draft.expires_at.millis()),
            state: Set(draft.state.stored().to_owned()),
            settled_at: NotSet,
            settled_by: NotSet,
        })
        .await
    }

    /// Returns a draft, and locks its row until the end of the transaction. A transaction that also locks the draft's conversation locks
    /// the draft first.
    pub async fn draft(&self, id: &DraftId) -> Result<Option<Draft>> {
        let found = drafts::Entity::find().filter(drafts::Column::StoreId.eq(self.store())).filter(drafts::Column::Id.eq(id));
        let row = self.select_for_update(found, model::<drafts::Entity>).await?.pop();
        // The time is read after the wait for the row lock, so that a draft which expired during the wait counts as expired.
        row.map(|row| draft(row, self.now())).transpose()
    }

    /// Saves the properties of a draft that can be changed. The caller has locked the row of the draft.
    pub async fn save_draft(&self, draft: &Draft) -> Result<()> {
        self.update(drafts::ActiveModel {
            store_id: Set(self.store().to_string()),
            id: Set(draft.id.to_string()),
            content: Set(content(&draft.send)?),
            conversation_id: Set(draft.conversation_id.as_ref().map(ToString::to_string)),
            seen_message_id: Set(draft.seen_message_id.as_ref().map(ToString::to_string)),
            updated_at: Set(draft.updated_at.millis()),
            state: Set(draft.state.stored().to_owned()),
            settled_at: Set(draft.settled_at.map(Timestamp::millis)),
            settled_by: Set(draft.settled_by.as_ref().map(UserId::to_string)),
            ..Default::default()
        })
        .await
    }

    /// Returns the number of drafts that wait for approval. On PostgreSQL, concurrent transactions that create drafts do not count each
    /// other's drafts, so together they may exceed a limit.
    pub async fn count_pending_drafts(&self) -> Result<i64> {
        let pending = Query::select()
            .expr(Func::count(Expr::col(drafts::Column::Id)))
            .from(drafts::Entity)
            .cond_where(in_state(self.store(), DraftState::Pending, self.now()))
            .to_owned();
        Ok(self.select(pending, |cells| cells.take()).await?.pop().unwrap_or_default())
    }

    /// Deletes at most `limit` drafts that were made before a time.
    pub async fn prune_drafts(&self, before: Timestamp, limit: u64) -> Result<()> {
        let old = drafts::Entity::find()
            .select_only()
            .column(drafts::Column::Id)
            .filter(drafts::Column::StoreId.eq(self.store()))
            // The condition names all states so that the index by state can be used.
            .filter(drafts::Column::State.is_in(["pending", "released", "discarded"]))
            .filter(drafts::Column::CreatedAt.lt(before))
            .limit(limit);
        let old: Vec<DraftId> = self.select(old, |cells| cells.take()).await?;
        if !old.is_empty() {
            let deleted =
                drafts::Entity::delete_many().filter(drafts::Column::StoreId.eq(self.store())).filter(among(drafts::Column::Id, &old));
            self.execute(&deleted).await?;
        }
        Ok(())
    }

    /// Returns the inbound message of a conversation that was received last.
    pub async fn newest_inbound(&self, conversation: &ConversationId) -> Result<Option<MessageId>> {
        let newest = messages::Entity::find()
            .select_only()
            .columns([messages::Column::CreatedAt, messages::Column::Id])
            .filter(messages::Column::StoreId.eq(self.store()))
            .filter(messages::Column::ConversationId.eq(conversation))
            .filter(messages::Column::Inbound.eq(true))
            .order_by_desc(messages::Column::SentAt)
            .order_by_desc(messages::Column::Id)
            .limit(NEWEST_INBOUND_CANDIDATES);
        let newest: Vec<(Timestamp, MessageId)> = self.select(newest, |cells| Ok((cells.take()?, cells.take()?))).await?;
        Ok(newest.into_iter().max().map(|(_, id)| id))
    }
}

impl Db {
    pub async fn draft(&self, store: &StoreId, id: &DraftId, now: Timestamp) -> Result<Option<Draft>> {
        let row = self.find_one(drafts::Entity::find().filter(drafts::Column::StoreId.eq(store)).filter(drafts::Column::Id.eq(id))).await?;
        row.map(|row| draft(row, now)).transpose()
    }

    /// Returns at most `limit` drafts in a state, the newest first, after the draft `after` (keyset pagination).
    pub async fn drafts(
        &self,
        store: &StoreId,
        state: DraftState,
        after: Option<&Draft>,
        limit: i64,
        now: Timestamp,
    ) -> Result<Vec<Draft>> {
        let rows = self.find_all(
            drafts::Entity::find()
                .filter(in_state(store, state, now))
                .apply_if(after, |query, after| {
                    let same = Condition::all().add(drafts::Column::CreatedAt.eq(after.created_at)).add(drafts::Column::Id.lt(&after.id));
                    query.filter(Condition::any().add(drafts::Column::CreatedAt.lt(after.created_at)).add(same))
                })
                .order_by_desc(drafts::Column::CreatedAt)
                .order_by_desc(drafts::Column::Id)
                .limit(u64::try_from(limit).unwrap_or_default()),
        );
        rows.await?.into_iter().map(|row| draft(row, now)).collect()
    }
}
