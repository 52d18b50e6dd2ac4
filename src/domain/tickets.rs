//! The ticket record, the range of its messages, and the check of its revenue (API contract, sections 2.2 and 3.1).

use super::{
    ids::{AccountId, ContactId, ConversationId, TicketId, UserId},
    stores_and_accounts::{Channel, ChannelRef},
    time::Timestamp,
    users_teams_labels::UserRef,
};

/// A ticket: a piece of support work on a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub id: TicketId,
    /// The ticket number that people see.
    pub number: String,
    pub is_open: bool,
    pub is_spam: bool,
    pub is_follow_up: bool,
    pub channel: Channel,
    pub contact_id: ContactId,
    pub account_id: AccountId,
    pub conversation_id: ConversationId,
    pub opened_at: Timestamp,
    pub closed_at: Option<Timestamp>,
    pub reopened_at: Option<Timestamp>,
    /// The end of a snooze, which may have passed. Internal: not part of the API.
    pub snoozed_until: Option<Timestamp>,
    pub assignee_user_id: Option<UserId>,
    pub handled_by: Option<UserId>,
    /// The text of a JSON object: the values of ticket fields. Each key is the id of a ticket field, or a system key
    /// ([`SYSTEM_KEYS`](super::custom_fields::SYSTEM_KEYS)).
    pub fields: String,
    pub fields_updated_at: Option<Timestamp>,
    /// The sort key of ticket lists: the time of the newest message in the ticket's window ([`TicketWindow`]), or else `opened_at`.
    pub sort_at: Timestamp,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The related records that a request adds to a ticket with the query parameter `expand`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicketExpand {
    pub account: bool,
    pub conversation: bool,
    pub assignee: bool,
    pub handled_by: bool,
}

/// A ticket with the related records that were requested and exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketView {
    pub ticket: Ticket,
    pub account: Option<ChannelRef>,
    pub conversation: Option<ChannelRef>,
    pub assignee: Option<UserRef>,
    pub handled_by: Option<UserRef>,
}

/// The range of a ticket's messages in its conversation: after `after`, and at or before `until`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketWindow {
    pub conversation_id: ConversationId,
    /// When the previous ticket of the conversation closed. Absent: the range begins with the first message.
    pub after: Option<Timestamp>,
    /// When this ticket closed. Absent: the range has no end.
    pub until: Option<Timestamp>,
}

/// The resolution statuses (contract, section 4.2). A ticket filter also accepts `none`, which is not a status.
pub const RESOLUTION_STATUSES: [&str; 4] = ["human", "automation", "ai_full_resolution", "ai_partial_resolution"];

/// The maximum number of digits of a revenue, before and after the decimal point together. A zero before the point does not count.
const REVENUE_DIGITS: usize = 15;
/// The maximum number of digits of a revenue after the decimal point.
const REVENUE_DECIMALS: usize = 4;

/// Whether a number can be a ticket's revenue: not negative, and with few enough digits to be exact as a double.
pub fn is_revenue(number: &serde_json::Value) -> bool {
    let text = match (number.as_u64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        // `to_string` writes the number without an exponent, with the fewest digits that identify it.
        (None, Some(number)) if number >= 0.0 => number.abs().to_string(),
        _ => return false,
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    whole.trim_start_matches('0').len() + decimals.len() <= REVENUE_DIGITS && decimals.len() <= REVENUE_DECIMALS
}
