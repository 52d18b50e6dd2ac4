//! Drafts: messages to contacts that an assistant proposes with an API key, and that a user releases (sends), edits or discards.

use super::{
    ids::{AccountId, ConversationId, DraftId, KeyId, MessageId, UserId},
    send_requests::Send,
    time::Timestamp,
};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// A draft can be released within this time after its creation.
pub const DRAFT_LIFETIME_MILLIS: i64 = 7 * DAY;

/// A draft is kept for this time after its creation. The time is longer than [`DRAFT_LIFETIME_MILLIS`], so no pending draft is deleted.
pub const DRAFT_KEPT_MILLIS: i64 = 30 * DAY;

/// The limit of pending drafts of a store.
pub const MAX_PENDING_DRAFTS: u32 = 1000;

/// The states of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DraftState {
    Pending,
    Released,
    Discarded,
    /// The draft was neither released nor discarded within its lifetime.
    Expired,
}

impl DraftState {
    pub const ALL: [Self; 4] = [Self::Pending, Self::Released, Self::Discarded, Self::Expired];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Released => "released",
            Self::Discarded => "discarded",
            Self::Expired => "expired",
        }
    }

    /// Returns the state as it is stored. An expired draft is still stored as pending, since its expiry causes no write.
    pub const fn stored(self) -> &'static str {
        match self {
            Self::Pending | Self::Expired => Self::Pending.name(),
            Self::Released | Self::Discarded => self.name(),
        }
    }

    /// Returns the state of a draft from its stored state and its expiry.
    pub fn of(stored: &str, expires_at: Timestamp, now: Timestamp) -> Self {
        match stored {
            "released" => Self::Released,
            "discarded" => Self::Discarded,
            _ if expires_at <= now => Self::Expired,
            _ => Self::Pending,
        }
    }
}

/// A proposed message: pending, released, discarded or expired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    pub id: DraftId,
    /// The API key with which the draft was made. The key may have been deleted since.
    pub key_id: KeyId,
    /// The name of the key when the draft was made.
    pub key_name: String,
    pub send: Send,
    /// The conversation of the message, if the conversation existed when the draft was made.
    pub conversation_id: Option<ConversationId>,
    /// The account that was named in the request that created the draft.
    pub account_id: Option<AccountId>,
    /// The newest inbound message of the conversation when the draft was made.
    pub seen_message_id: Option<MessageId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub expires_at: Timestamp,
    /// The state at the time when the draft was read from the database.
    pub state: DraftState,
    /// When the draft was released or discarded.
    pub settled_at: Option<Timestamp>,
    /// The user who released or discarded the draft. Absent if the draft is pending or expired, or was released or discarded on the command
    /// line.
    pub settled_by: Option<UserId>,
}

/// A request to release a draft.
#[derive(Clone, Debug)]
pub struct Release {
    pub draft_id: DraftId,
    /// The message that the draft had when the server received the request to release it. If the draft is edited before the transaction
    /// that sends it, it is not released.
    pub send: Send,
    /// The newest inbound message that the releasing user read, if it is newer than the draft.
    pub confirmed_message_id: Option<MessageId>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_expires_unless_it_was_settled() {
        let [before, end] = [9, 10].map(Timestamp::from_millis);
        for state in DraftState::ALL {
            let expired = DraftState::of(state.stored(), end, end);
            assert_eq!(expired, if state == DraftState::Pending { DraftState::Expired } else { state });
        }
        assert_eq!(DraftState::of("pending", end, before), DraftState::Pending);
        assert_eq!(DraftState::of("released", end, before).name(), "released");
    }
}
