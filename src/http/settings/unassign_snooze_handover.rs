//! Operations of the settings API that unassign and snooze tickets, and that hand a conversation over from the AI to people. The public
//! API (`/v1`) has no operations for this.

use poem_openapi::{Object, OpenApi};
use serde::{Deserialize, Serialize};

use super::{auth::GrantedRequest, required_grants};
use crate::{
    domain::{
        tickets::{TicketExpand, TicketView},
        time::Timestamp,
    },
    http::machinery::{
        body::Body,
        error_responses::{ApiError, Failure, SettingsAction},
        idempotency::{Acknowledgement, IdempotencyKey, once},
        success_responses::{One, Reply},
    },
    service::unassign_snooze_handover::Escalation,
};

/// The ticket that an operation applies to.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TicketReference {
    /// The ticket whose assignee is removed, or whose snooze ends.
    #[oai(validator(max_length = 64))]
    ticket_id: String,
}

/// A ticket to snooze.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Snooze {
    /// The ticket to hide for a time; a closed one is refused.
    #[oai(validator(max_length = 64))]
    ticket_id: String,
    /// When the snooze ends, unless the ticket's contact writes earlier. It must be in the future.
    until: Timestamp,
}

/// The state of a ticket. GET /v1/tickets returns the whole ticket.
#[derive(Debug, Object, Serialize)]
#[oai(rename_all = "camelCase", skip_serializing_if_is_none)]
#[serde(rename_all = "camelCase")]
pub struct TicketState {
    /// The ticket that the request named.
    id: String,
    /// `true` until the ticket is closed, also while it is snoozed.
    is_open: bool,
    /// The `userId` of the user whom the ticket is assigned to; absent if it is unassigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee_user_id: Option<String>,
    /// When the snooze ends; absent while the ticket is not snoozed.
    #[serde(skip_serializing_if = "Option::is_none")]
    snoozed_until: Option<Timestamp>,
    /// When the ticket last changed; a snooze and its end do not change this time.
    updated_at: Timestamp,
}

impl From<TicketView> for TicketState {
    fn from(view: TicketView) -> Self {
        let ticket = view.ticket;
        Self {
            id: ticket.id.into_string(),
            is_open: ticket.is_open,
            assignee_user_id: ticket.assignee_user_id.map(|id| id.into_string()),
            snoozed_until: ticket.snoozed_until,
            updated_at: ticket.updated_at,
        }
    }
}

/// The handover of a conversation from the AI to people.
#[derive(Debug, Object, Deserialize)]
#[oai(rename_all = "camelCase", deny_unknown_fields)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Handover {
    /// The conversation that people take over from the AI; it need not have an open ticket.
    #[oai(validator(max_length = 64))]
    conversation_id: String,
    /// The reason, for the user who takes over.
    #[oai(validator(max_length = 1000))]
    reason: Option<String>,
}

/// The operations that change the state of tickets and conversations.
#[derive(Debug)]
pub struct TicketStateOperations;

#[OpenApi(tag = "crate::http::settings::openapi_tags::SettingsTag::Inbox")]
impl TicketStateOperations {
    /// Unassign a ticket
    ///
    /// Removes the assignee of a ticket. A ticket without an assignee stays as it is.
    #[oai(path = "/tickets/unassign", method = "post", operation_id = "unassignTicket")]
    async fn unassign_ticket(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        body: Body<TicketReference>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<One<TicketState>>, Failure<SettingsAction>> {
        let id = body.parse()?.ticket_id.into();
        let by = managed.by(once::<TicketView, TicketState, _, _>("unassignTicket", &key, &body));
        let outcome = managed.state.service.unassign_ticket(&by, id, TicketExpand::default()).await.map_err(ApiError::in_body)?;
        Ok(Reply::outcome::<_, TicketState>(&managed.context, outcome))
    }

    /// Snooze a ticket
    ///
    /// Hides an open ticket until an instant, or until its contact writes.
    #[oai(path = "/tickets/snooze", method = "post", operation_id = "snoozeTicket")]
    async fn snooze_ticket(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        body: Body<Snooze>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<One<TicketState>>, Failure<SettingsAction>> {
        let snooze = body.parse()?;
        let by = managed.by(once::<TicketView, TicketState, _, _>("snoozeTicket", &key, &body));
        let (id, until) = (snooze.ticket_id.into(), snooze.until);
        let outcome = managed.state.service.snooze_ticket(&by, id, until, TicketExpand::default()).await.map_err(ApiError::in_body)?;
        Ok(Reply::outcome::<_, TicketState>(&managed.context, outcome))
    }

    /// End a snooze
    ///
    /// Ends the snooze of a ticket. A ticket that is not snoozed stays as it is.
    #[oai(path = "/tickets/unsnooze", method = "post", operation_id = "unsnoozeTicket")]
    async fn unsnooze_ticket(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        body: Body<TicketReference>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<One<TicketState>>, Failure<SettingsAction>> {
        let id = body.parse()?.ticket_id.into();
        let by = managed.by(once::<TicketView, TicketState, _, _>("unsnoozeTicket", &key, &body));
        let outcome = managed.state.service.unsnooze_ticket(&by, id, TicketExpand::default()).await.map_err(ApiError::in_body)?;
        Ok(Reply::outcome::<_, TicketState>(&managed.context, outcome))
    }

    /// Hand a conversation over to people
    ///
    /// Sends the event `ai.escalated`, the handover of a conversation from the AI to people, to subscribed webhooks. Nothing else changes.
    #[oai(path = "/conversations/escalate", method = "post", operation_id = "escalateConversation")]
    async fn escalate_conversation(
        &self,
        managed: GrantedRequest<required_grants::Team>,
        body: Body<Handover>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<One<Acknowledgement>>, Failure<SettingsAction>> {
        let Handover { conversation_id, reason } = body.parse()?;
        let by = managed.by(once::<(), Acknowledgement, _, _>("escalateConversation", &key, &body));
        let escalation = Escalation { conversation_id: conversation_id.into(), reason };
        let outcome = managed.state.service.escalate(&by, escalation).await.map_err(ApiError::in_body)?;
        Ok(Reply::outcome::<_, Acknowledgement>(&managed.context, outcome))
    }
}
