//! Use-cases that unassign a ticket, snooze a ticket, and escalate a conversation from the AI to humans. Only the settings API has
//! operations for them; the public API (`/v1`) has none.

use serde_json::{Value, json};

use super::{Error, Result, Service, WriteContext, WriteOutcome, write_transaction::begin};
use crate::domain::{
    events::{Actor, EventChange},
    ids::{ConversationId, TicketId},
    settings_access::{Entry, Subject},
    ticket_states::Refusal,
    tickets::{TicketExpand, TicketView},
    time::Timestamp,
};

/// The maximum length of the reason of an escalation, in characters.
const MAX_REASON_CHARS: usize = 1000;

/// An escalation: the AI hands a conversation over to humans.
#[derive(Debug)]
pub struct Escalation {
    pub conversation_id: ConversationId,
    /// A blank reason counts as absent.
    pub reason: Option<String>,
}

impl Service {
    /// Removes the assignee of a ticket, which may be open or closed. A ticket without an assignee is unchanged.
    pub async fn unassign_ticket(
        &self,
        by: &WriteContext<'_, TicketView>,
        id: TicketId,
        expand: TicketExpand,
    ) -> Result<WriteOutcome<TicketView>> {
        let mut change = begin!(self, by);
        let mut ticket = change.ticket(&id).await?.ok_or_else(|| Error::missing("ticketId", "ticket", &id))?;
        if let Some(previous) = ticket.unassign(change.now()) {
            change.save_ticket(&ticket).await?;
            change.audit(moved("ticket.unassigned", &id, json!({ "previousAssigneeUserId": previous })));
            change.note(EventChange::TicketUnassigned { ticket: ticket.clone(), previous: Some(previous) });
        }
        let view = self.expanded(by, ticket, expand).await?;
        change.finish(by, view).await
    }

    /// Snoozes an open ticket: the ticket stays open, but is hidden until the time `until`.
    pub async fn snooze_ticket(
        &self,
        by: &WriteContext<'_, TicketView>,
        id: TicketId,
        until: Timestamp,
        expand: TicketExpand,
    ) -> Result<WriteOutcome<TicketView>> {
        let mut change = begin!(self, by);
        let mut ticket = change.ticket(&id).await?.ok_or_else(|| Error::missing("ticketId", "ticket", &id))?;
        let snoozed = ticket.snooze(until, change.now()).map_err(|refusal| match refusal {
            Refusal::Past => Error::invalid("until", "must lie in the future"),
            Refusal::Closed | Refusal::Spam => {
                Error::invalid("ticketId", format!("names a ticket that {refusal}; only open tickets are snoozed"))
            }
        })?;
        if snoozed {
            change.save_ticket(&ticket).await?;
            change.audit(moved("ticket.snoozed", &id, json!({ "snoozedUntil": until })));
        }
        let view = self.expanded(by, ticket, expand).await?;
        change.finish(by, view).await
    }

    /// Ends a ticket's snooze; a ticket that is not snoozed is unchanged.
    pub async fn unsnooze_ticket(
        &self,
        by: &WriteContext<'_, TicketView>,
        id: TicketId,
        expand: TicketExpand,
    ) -> Result<WriteOutcome<TicketView>> {
        let mut change = begin!(self, by);
        let mut ticket = change.ticket(&id).await?.ok_or_else(|| Error::missing("ticketId", "ticket", &id))?;
        if ticket.wake() {
            change.save_ticket(&ticket).await?;
            change.audit(moved("ticket.unsnoozed", &id, json!({})));
        }
        let view = self.expanded(by, ticket, expand).await?;
        change.finish(by, view).await
    }

    /// Records the escalation event of a conversation, with its open ticket if there is one. The conversation and the ticket do not
    /// change. The actor is the AI, whichever client forwards the escalation.
    pub async fn escalate(&self, by: &WriteContext<'_, ()>, escalation: Escalation) -> Result<WriteOutcome<()>> {
        let reason = escalation.reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
        if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON_CHARS) {
            return Err(Error::invalid("reason", format!("must be at most {MAX_REASON_CHARS} characters long")));
        }
        let mut change = begin!(self, by);
        change.caused_by(Actor::Ai);
        let id = &escalation.conversation_id;
        let conversation = change.conversation(id).await?.ok_or_else(|| Error::missing("conversationId", "conversation", id))?;
        let ticket = change.latest_ticket(id).await?.filter(|ticket| ticket.is_open).map(Box::new);
        change.audit(Entry {
            action: "conversation.escalated",
            subject: Subject::Conversation,
            subject_id: id.to_string(),
            detail: json!({ "reason": reason }),
        });
        change.note(EventChange::AiEscalated { conversation, ticket, reason });
        change.finish(by, ()).await
    }
}

fn moved(action: &'static str, id: &TicketId, detail: Value) -> Entry {
    Entry { action, subject: Subject::Ticket, subject_id: id.to_string(), detail }
}
