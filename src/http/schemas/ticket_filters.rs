//! Ticket filters: the request body of POST /tickets/list (contract, section 4.2). This file checks shape and limits; the service checks
//! the filters against the store's field definitions.

use poem_openapi::{Enum, Object};
use serde::Deserialize;
use serde_json::Value;

use super::value_types::Any;
use crate::{
    domain::{
        ids::UserId,
        ticket_filters::{FieldFilter, FieldOperator, LabelFilter, LabelOperator, OpenedAt, Status, TicketFilter},
        time::Bound,
    },
    http::machinery::{error_responses::ApiError, params::ScalarParam},
};

/// The maximum number of ids in one filter, which limits the work of a request.
const MAX_IDS: usize = 500;
const MAX_LABELS: usize = 10;
const MAX_FIELDS: usize = 10;

/// Filters of the ticket list. An empty object lists open tickets that are neither spam nor snoozed. A member that is `null` or an empty
/// array counts as omitted. If `statuses` or `isSpam` is omitted, the default in its description applies; any other omitted member does not
/// filter.
//
// `openapi::document_post_processing` replaces the placeholders `{or all}` and `{alone}` by the texts for the revision of the contract (A
// or B) that this build serves.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields, nullable_all)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TicketFilters {
    /// Statuses to list. If omitted: open tickets that are not snoozed{or all}. With both `open` and `closed`: all tickets,
    /// including snoozed ones.
    statuses: Option<Vec<TicketStatus>>,
    /// Tickets of this conversation{alone}.
    conversation_id: Option<String>,
    /// Tickets of any of these channel accounts.
    #[oai(validator(max_items = 500))]
    account_ids: Option<Vec<String>>,
    /// Tickets assigned to any of these users. Cannot be combined with `unassigned: true`.
    #[oai(validator(max_items = 500))]
    assignee_user_ids: Option<Vec<String>>,
    /// Tickets whose `handledBy` is any of these users.
    #[oai(validator(max_items = 500))]
    handled_by_user_ids: Option<Vec<String>>,
    /// Tickets with any of these resolution statuses; `none` matches tickets without one.
    resolution_statuses: Option<Vec<ResolutionStatus>>,
    /// `true`: tickets without an assignee. `false` does not filter.
    unassigned: Option<bool>,
    /// `true`: only tickets that follow an earlier ticket of their conversation; `false`: only the others. Omitted or `null`: no filter.
    is_follow_up: Option<bool>,
    /// `true`: only spam tickets. `false`, `null` or omitted: only tickets that are not spam.
    is_spam: Option<bool>,
    /// Filters on labels, field values, waiting time and opening time; all must match.
    advanced_filters: Option<AdvancedFilters>,
}

/// The statuses by which a ticket list can be filtered; `open` alone leaves out snoozed tickets.
#[derive(Debug, Clone, Copy, Enum, Deserialize)]
#[oai(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
enum TicketStatus {
    Open,
    Closed,
}

/// What resolved a ticket: a human, automation, or the AI in full or in part; `none` stands for no recorded status.
#[derive(Debug, Clone, Copy, Enum, Deserialize)]
#[oai(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
enum ResolutionStatus {
    None,
    Human,
    Automation,
    AiFullResolution,
    AiPartialResolution,
}

/// Filters that all must match.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields, nullable_all)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AdvancedFilters {
    /// Selects tickets by the labels on their conversation. Does not filter when omitted or `null`.
    labels: Option<LabelsFilter>,
    /// Filters on field values; all must match.
    #[oai(validator(max_items = 10))]
    ticket_fields: Option<Vec<TicketFieldFilter>>,
    /// Selects open tickets whose contact has waited for a reply for at least a number of minutes.
    waiting_for_reply: Option<WaitingForReplyFilter>,
    /// Selects tickets by the time when they were first opened. Does not filter when omitted or `null`.
    opened_at: Option<OpenedAtFilter>,
}

/// A filter on the labels of the ticket's conversation.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LabelsFilter {
    /// How the labels of the conversation must relate to `labelIds`.
    operator: LabelsOperator,
    /// Ids of 1 to 10 labels to look for on the ticket's conversation.
    #[oai(validator(min_items = 1, max_items = 10))]
    label_ids: Vec<String>,
}

/// Whether a conversation must have at least one of the labels (`contains_any`), every one (`contains_all`) or none
/// (`does_not_contain_any`).
#[derive(Debug, Clone, Copy, Enum, Deserialize)]
#[oai(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
enum LabelsOperator {
    ContainsAny,
    ContainsAll,
    DoesNotContainAny,
}

/// A filter on the value of one ticket field, or of a system key of `ticketFields`, such as `isConverted`.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TicketFieldFilter {
    /// The id of the field, or the system key.
    #[oai(validator(max_length = 64))]
    ticket_field_id: String,
    /// How the value is tested. The type of the field determines which operators are allowed.
    operator: TicketFieldOperator,
    /// The value to compare with; an array if the operator accepts several. Not allowed with `between`, `is_empty` and `is_not_empty`.
    #[oai(nullable)]
    value: Option<Any>,
    /// Inclusive lower bound of `between`.
    #[oai(nullable)]
    min: Option<Any>,
    /// Inclusive upper bound of `between`.
    #[oai(nullable)]
    max: Option<Any>,
}

/// The operator of a field filter. `not_equal`, `is_not_one_of` and `does_not_contain_any` also match tickets on which the field is unset.
#[derive(Debug, Clone, Copy, Enum, Deserialize)]
#[oai(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
enum TicketFieldOperator {
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

/// A filter on how long the ticket's contact has waited for a reply.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WaitingForReplyFilter {
    /// The minimum waiting time in minutes.
    #[oai(validator(minimum(value = "0")))]
    #[serde(deserialize_with = "whole_number")]
    value: i64,
}

/// A filter on the ticket's `openedAt`.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OpenedAtFilter {
    /// How `openedAt` is compared. The operator determines whether `value`, or `min` and `max`, must be sent.
    operator: OpenedAtOperator,
    /// Exclusive bound of `greater_than` and `less_than`.
    #[oai(nullable)]
    value: Option<Bound>,
    /// Inclusive lower bound of `between`.
    #[oai(nullable)]
    min: Option<Bound>,
    /// Inclusive upper bound of `between`.
    #[oai(nullable)]
    max: Option<Bound>,
}

/// The operator of a time filter: `between` requires `min` and `max`; `greater_than` means later, `less_than` earlier than `value`.
#[derive(Debug, Clone, Copy, Enum, Deserialize)]
#[oai(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
enum OpenedAtOperator {
    Between,
    GreaterThan,
    LessThan,
}

/// Parses a whole number, such as `5` or `5.0`; the module `json_schema_validation` has already refused fractions. A number beyond the
/// range of `i64` becomes the largest or the smallest `i64`. The largest `i64` matches no ticket, since no contact has waited for so many
/// minutes. The smallest `i64` is refused later, like every negative number.
fn whole_number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    Ok(number as i64)
}

/// Converts the user ids of a filter. A UUID becomes lower case, as UUIDs in other requests do. Any other text is left unchanged.
fn user_ids(name: &str, given: Option<Vec<String>>) -> Result<Vec<UserId>, ApiError> {
    let ids = ids::<UserId>(name, given)?;
    Ok(ids.into_iter().map(|id| UserId::parse(id.as_str()).unwrap_or(id)).collect())
}

/// Converts the ids of a filter; more than [`MAX_IDS`] are refused.
fn ids<T: From<String>>(name: &str, ids: Option<Vec<String>>) -> Result<Vec<T>, ApiError> {
    let ids = ids.unwrap_or_default();
    if ids.len() > MAX_IDS {
        return Err(ApiError::field(&format!("body.{name}"), format!("must hold at most {MAX_IDS} ids")));
    }
    Ok(ids.into_iter().map(T::from).collect())
}

impl TicketFilters {
    /// Converts the filters to the type of the domain. The error names the property that breaks a rule.
    pub fn check(self) -> Result<TicketFilter, ApiError> {
        let assignee_user_ids = user_ids("assigneeUserIds", self.assignee_user_ids)?;
        let unassigned = self.unassigned.unwrap_or(false);
        if unassigned && !assignee_user_ids.is_empty() {
            return Err(ApiError::field("body.assigneeUserIds", "cannot be combined with `unassigned: true`"));
        }
        let mut statuses = Vec::new();
        for status in self.statuses.unwrap_or_default() {
            let status = match status {
                TicketStatus::Open => Status::Open,
                TicketStatus::Closed => Status::Closed,
            };
            if !statuses.contains(&status) {
                statuses.push(status);
            }
        }
        let mut resolution_statuses: Vec<String> = Vec::new();
        for status in self.resolution_statuses.unwrap_or_default() {
            let status = status.name().to_owned();
            if !resolution_statuses.contains(&status) {
                resolution_statuses.push(status);
            }
        }
        let mut filter = TicketFilter {
            statuses,
            conversation_id: self.conversation_id.map(Into::into),
            account_ids: ids("accountIds", self.account_ids)?,
            assignee_user_ids,
            handled_by_user_ids: user_ids("handledByUserIds", self.handled_by_user_ids)?,
            resolution_statuses,
            unassigned,
            is_follow_up: self.is_follow_up,
            is_spam: self.is_spam.unwrap_or(false),
            ..TicketFilter::default()
        };
        if let Some(advanced) = self.advanced_filters {
            advanced.check(&mut filter)?;
        }
        Ok(filter)
    }
}

const ADVANCED: &str = "body.advancedFilters";

impl AdvancedFilters {
    fn check(self, filter: &mut TicketFilter) -> Result<(), ApiError> {
        filter.labels = self.labels.map(LabelsFilter::check).transpose()?;
        let fields = self.ticket_fields.unwrap_or_default();
        if fields.len() > MAX_FIELDS {
            return Err(ApiError::field(&format!("{ADVANCED}.ticketFields"), format!("must hold at most {MAX_FIELDS} filters")));
        }
        filter.fields = fields.into_iter().map(TicketFieldFilter::into_domain).collect();
        if let Some(waiting) = self.waiting_for_reply {
            if waiting.value < 0 {
                return Err(ApiError::field(&format!("{ADVANCED}.waitingForReply.value"), "must be a number of minutes, 0 or more"));
            }
            filter.waiting_minutes = Some(waiting.value);
        }
        filter.opened_at = self.opened_at.map(OpenedAtFilter::check).transpose()?;
        Ok(())
    }
}

impl LabelsFilter {
    fn check(self) -> Result<LabelFilter, ApiError> {
        if !(1..=MAX_LABELS).contains(&self.label_ids.len()) {
            return Err(ApiError::field(&format!("{ADVANCED}.labels.labelIds"), format!("must hold 1 to {MAX_LABELS} ids")));
        }
        let operator = match self.operator {
            LabelsOperator::ContainsAny => LabelOperator::ContainsAny,
            LabelsOperator::ContainsAll => LabelOperator::ContainsAll,
            LabelsOperator::DoesNotContainAny => LabelOperator::DoesNotContainAny,
        };
        Ok(LabelFilter { operator, label_ids: self.label_ids.into_iter().map(Into::into).collect() })
    }
}

impl TicketFieldFilter {
    fn into_domain(self) -> FieldFilter {
        let value = |value: Option<Any>| value.map(|any| any.0).filter(|value| *value != Value::Null);
        FieldFilter {
            field_id: self.ticket_field_id.into(),
            operator: self.operator.into_domain(),
            value: value(self.value),
            min: value(self.min),
            max: value(self.max),
        }
    }
}

impl TicketFieldOperator {
    fn into_domain(self) -> FieldOperator {
        match self {
            Self::Equal => FieldOperator::Equal,
            Self::NotEqual => FieldOperator::NotEqual,
            Self::StartsWith => FieldOperator::StartsWith,
            Self::TextContains => FieldOperator::TextContains,
            Self::IsOneOf => FieldOperator::IsOneOf,
            Self::IsNotOneOf => FieldOperator::IsNotOneOf,
            Self::ContainsAny => FieldOperator::ContainsAny,
            Self::ContainsAll => FieldOperator::ContainsAll,
            Self::DoesNotContainAny => FieldOperator::DoesNotContainAny,
            Self::GreaterThan => FieldOperator::GreaterThan,
            Self::LessThan => FieldOperator::LessThan,
            Self::Between => FieldOperator::Between,
            Self::IsEmpty => FieldOperator::IsEmpty,
            Self::IsNotEmpty => FieldOperator::IsNotEmpty,
        }
    }
}

impl ResolutionStatus {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Human => "human",
            Self::Automation => "automation",
            Self::AiFullResolution => "ai_full_resolution",
            Self::AiPartialResolution => "ai_partial_resolution",
        }
    }
}

impl OpenedAtFilter {
    fn check(self) -> Result<OpenedAt, ApiError> {
        let place = |name: &str| format!("{ADVANCED}.openedAt.{name}");
        let need = |name: &str, bound: Option<Bound>| bound.ok_or_else(|| ApiError::field(&place(name), "is required with this operator"));
        let refuse = |name: &str, bound: Option<Bound>| match bound {
            Some(_) => Err(ApiError::field(&place(name), "does not go with this operator")),
            None => Ok(()),
        };
        match self.operator {
            OpenedAtOperator::Between => {
                refuse("value", self.value)?;
                let (min, max) = (need("min", self.min)?, need("max", self.max)?);
                if min > max {
                    return Err(ApiError::field(&place("min"), "must not be after `max`"));
                }
                Ok(OpenedAt::Between(min.at_or_after(), max.at_or_before()))
            }
            operator => {
                refuse("min", self.min)?;
                refuse("max", self.max)?;
                let value = need("value", self.value)?;
                Ok(match operator {
                    OpenedAtOperator::LessThan => OpenedAt::Before(value.before()),
                    OpenedAtOperator::GreaterThan | OpenedAtOperator::Between => OpenedAt::After(value.after()),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(body: Value) -> String {
        serde_json::from_value::<TicketFilters>(body).unwrap().check().unwrap_err().message
    }

    #[test]
    fn a_filter_beyond_a_limit_is_refused_with_the_name_of_its_member() {
        let many = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        for (body, field) in [
            (json!({"assigneeUserIds": ["a"], "unassigned": true}), "`body.assigneeUserIds`"),
            (json!({"accountIds": many(501)}), "`body.accountIds`"),
            (
                json!({"advancedFilters": {"labels": {"operator": "contains_any", "labelIds": []}}}),
                "`body.advancedFilters.labels.labelIds`",
            ),
            (
                json!({"advancedFilters": {"labels": {"operator": "contains_any", "labelIds": many(11)}}}),
                "`body.advancedFilters.labels.labelIds`",
            ),
            (json!({"advancedFilters": {"waitingForReply": {"value": -1}}}), "`body.advancedFilters.waitingForReply.value`"),
            (
                json!({"advancedFilters": {"openedAt": {"operator": "between", "min": "2026-01-01T00:00:00Z"}}}),
                "`body.advancedFilters.openedAt.max`",
            ),
            (json!({"advancedFilters": {"openedAt": {"operator": "less_than"}}}), "`body.advancedFilters.openedAt.value`"),
            (
                json!({"advancedFilters": {"openedAt": {"operator": "between", "min": "2026-01-02T00:00:00Z", "max": "2026-01-01T00:00:00Z"}}}),
                "`body.advancedFilters.openedAt.min`",
            ),
        ] {
            let message = refused(body.clone());
            assert!(message.starts_with(field), "{body}: {message}");
        }
    }

    #[test]
    fn an_opening_time_between_two_milliseconds_is_rounded_by_its_operator() {
        let opened_at = |filter: Value| {
            let body = json!({"advancedFilters": {"openedAt": filter}});
            serde_json::from_value::<TicketFilters>(body).unwrap().check().unwrap().opened_at.unwrap()
        };
        let at = |millis: u32| format!("2026-01-01T00:00:00.{millis:03}Z").parse().unwrap();
        let fine = |digits: &str| format!("2026-01-01T00:00:00.{digits}Z");
        assert_eq!(opened_at(json!({"operator": "greater_than", "value": fine("0019")})), OpenedAt::After(at(1)));
        assert_eq!(opened_at(json!({"operator": "less_than", "value": fine("0011")})), OpenedAt::Before(at(2)));
        let between = |min: &str, max: &str| json!({"operator": "between", "min": fine(min), "max": fine(max)});
        assert_eq!(opened_at(between("0011", "0049")), OpenedAt::Between(at(2), at(4)));
        assert_eq!(opened_at(between("0011", "0019")), OpenedAt::Between(at(2), at(1)));
        let message = refused(json!({"advancedFilters": {"openedAt": between("0019", "0011")}}));
        assert!(message.starts_with("`body.advancedFilters.openedAt.min`"), "{message}");
    }

    #[test]
    fn null_and_empty_members_do_not_filter() {
        let body = json!({"statuses": [], "accountIds": null, "unassigned": false, "isSpam": false, "advancedFilters": {"labels": null, "ticketFields": []}});
        assert_eq!(serde_json::from_value::<TicketFilters>(body).unwrap().check().unwrap(), TicketFilter::default());
    }
}
