//! Ticket filters of POST /tickets/list (API contract, section 4.2). The form of a filter is checked when the request is read. Later
//! `domain::ticket_field_filters` checks its field ids and values against the field definitions of the store (tenant). Then
//! `store::tickets::filter` converts the filter to SQL.

use serde_json::Value;

use super::{
    ids::{AccountId, ConversationId, FieldId, LabelId, UserId},
    time::Timestamp,
};

/// A ticket filter. An absent or empty property does not restrict the result, with one exception: if `statuses` is empty, [`Self::shown`]
/// decides which tickets are selected. `is_spam` always restricts the result: it selects only spam tickets (true), or only tickets that are
/// not spam (false).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TicketFilter {
    pub statuses: Vec<Status>,
    pub conversation_id: Option<ConversationId>,
    pub account_ids: Vec<AccountId>,
    pub assignee_user_ids: Vec<UserId>,
    pub handled_by_user_ids: Vec<UserId>,
    /// Values of [`super::tickets::RESOLUTION_STATUSES`], or `none` for tickets without a resolution status.
    pub resolution_statuses: Vec<String>,
    pub unassigned: bool,
    pub is_follow_up: Option<bool>,
    pub is_spam: bool,
    pub labels: Option<LabelFilter>,
    /// The filters on field values, in the order of the request: an error identifies a field filter by its index.
    pub fields: Vec<FieldFilter>,
    pub waiting_minutes: Option<i64>,
    pub opened_at: Option<OpenedAt>,
}

/// The ticket statuses by which a filter can select tickets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Open,
    Closed,
}

/// The tickets that match the status filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShownTickets {
    /// Open tickets that are not snoozed.
    Open,
    Closed,
    /// All tickets: open, snoozed and closed ones.
    All,
}

impl TicketFilter {
    /// Whether the filter uses no property except `statuses` and `is_spam`.
    pub fn is_plain(&self) -> bool {
        *self == Self { statuses: self.statuses.clone(), is_spam: self.is_spam, ..Self::default() }
    }

    /// Returns which tickets match the status filter. `history` is a setting of the API revision (`Rules::conversation_history`): whether a
    /// filter with only a conversation id selects tickets of every status.
    pub fn shown(&self, history: bool) -> ShownTickets {
        let (open, closed) = (self.statuses.contains(&Status::Open), self.statuses.contains(&Status::Closed));
        match (open, closed) {
            (true, true) => ShownTickets::All,
            (false, true) => ShownTickets::Closed,
            (true, false) => ShownTickets::Open,
            (false, false) if history && self.only_conversation() => ShownTickets::All,
            (false, false) => ShownTickets::Open,
        }
    }

    fn only_conversation(&self) -> bool {
        self.conversation_id.is_some() && *self == Self { conversation_id: self.conversation_id.clone(), ..Self::default() }
    }
}

/// A filter on the labels of a ticket's conversation. It contains 1 to 10 label ids.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelFilter {
    pub operator: LabelOperator,
    pub label_ids: Vec<LabelId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelOperator {
    ContainsAny,
    ContainsAll,
    DoesNotContainAny,
}

/// A filter on the value of one ticket field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldFilter {
    pub field_id: FieldId,
    pub operator: FieldOperator,
    pub value: Option<Value>,
    pub min: Option<Value>,
    pub max: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOperator {
    Equal,
    NotEqual,
    StartsWith,
    TextContains,
    IsOneOf,
    IsNotOneOf,
    ContainsAny,
    ContainsAll,
    DoesNotContainAny,
    GreaterThan,
    LessThan,
    Between,
    IsEmpty,
    IsNotEmpty,
}

impl FieldOperator {
    pub const ALL: [Self; 14] = [
        Self::Equal,
        Self::NotEqual,
        Self::StartsWith,
        Self::TextContains,
        Self::IsOneOf,
        Self::IsNotOneOf,
        Self::ContainsAny,
        Self::ContainsAll,
        Self::DoesNotContainAny,
        Self::GreaterThan,
        Self::LessThan,
        Self::Between,
        Self::IsEmpty,
        Self::IsNotEmpty,
    ];
}

/// A filter on the time when a ticket was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedAt {
    /// The ticket was opened at or after the first timestamp, and at or before the second. The instants of the request are rounded to
    /// milliseconds: the first up, the second down. If both instants are between the same two milliseconds, no ticket matches.
    Between(Timestamp, Timestamp),
    After(Timestamp),
    Before(Timestamp),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_tickets_are_shown_by_status_or_a_filter_of_only_a_conversation() {
        let only = TicketFilter { conversation_id: Some("c".into()), ..Default::default() };
        assert_eq!(only.shown(true), ShownTickets::All);
        assert_eq!(only.shown(false), ShownTickets::Open);
        assert_eq!(TicketFilter { is_follow_up: Some(false), ..only.clone() }.shown(true), ShownTickets::Open);
        assert_eq!(TicketFilter { statuses: vec![Status::Open], ..only.clone() }.shown(true), ShownTickets::Open);
        assert_eq!(TicketFilter { is_spam: true, ..only }.shown(true), ShownTickets::Open);
        assert_eq!(TicketFilter { statuses: vec![Status::Closed, Status::Open], ..Default::default() }.shown(false), ShownTickets::All);
        assert_eq!(TicketFilter::default().shown(true), ShownTickets::Open);
    }
}
