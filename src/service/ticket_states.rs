//! Moves of tickets that no operation of `/v1` asks for: taking one from its assignee, snoozing it, and the AI that hands
//! a conversation over (decisions, sections 7 and 8). Called by the settings plane.

use serde_json::{Value, json};

use super::{By, Error, Outcome, Result, Service, change::begin};
use crate::domain::{
    events::{Actor, Fact},
    ids::{ConversationId, TicketId},
    settings::{Entry, Subject},
    ticket_states::Refusal,
    tickets::{TicketExpand, TicketView},
    time::Timestamp,
};

/// The longest reason that the AI may give, in characters.
const MAX_REASON_CHARS: usize = 1000;

/// What the AI says of a conversation that it hands over.
#[derive(Debug)]
pub struct Escalation {
    pub conversation_id: ConversationId,
    /// Blank counts as absent.
    pub reason: Option<String>,
}

impl Service {
    /// Takes a ticket from its assignee. One that nobody has stays as it is; a closed one loses its assignee like any other.
    pub async fn unassign_ticket(&self, by: &By<'_, TicketView>, id: TicketId, expand: TicketExpand) -> Result<Outcome<TicketView>> {
        let mut change = begin!(self, by);
        let mut ticket = change.ticket(&id).await?.ok_or_else(|| Error::missing("ticketId", "ticket", &id))?;
        if let Some(previous) = ticket.unassign(change.now()) {
            change.save_ticket(&ticket).await?;
            change.audit(moved("ticket.unassigned", &id, json!({ "previousAssigneeUserId": previous })));
            change.note(Fact::TicketUnassigned { ticket: ticket.clone(), previous: Some(previous) });
        }
        let view = self.expanded(by, ticket, expand).await?;
        change.finish(by, view).await
    }

    /// Puts an open ticket out of sight until then.
    pub async fn snooze_ticket(
        &self,
        by: &By<'_, TicketView>,
        id: TicketId,
        until: Timestamp,
        expand: TicketExpand,
    ) -> Result<Outcome<TicketView>> {
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

    /// Ends a ticket's snooze; one that is not snoozed stays as it is.
    pub async fn unsnooze_ticket(&self, by: &By<'_, TicketView>, id: TicketId, expand: TicketExpand) -> Result<Outcome<TicketView>> {
        let mut change = begin!(self, by);
        let mut ticket = change.ticket(&id).await?.ok_or_else(|| Error::missing("ticketId", "ticket", &id))?;
        if ticket.wake() {
            change.save_ticket(&ticket).await?;
            change.audit(moved("ticket.unsnoozed", &id, json!({})));
        }
        let view = self.expanded(by, ticket, expand).await?;
        change.finish(by, view).await
    }

    /// Tells subscribers that the AI hands a conversation over, with its open ticket if there is one. Nothing else changes,
    /// and whoever passes the word on, the AI is the one who did it.
    pub async fn escalate(&self, by: &By<'_, ()>, escalation: Escalation) -> Result<Outcome<()>> {
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
        change.note(Fact::AiEscalated { conversation, ticket, reason });
        change.finish(by, ()).await
    }
}

fn moved(action: &'static str, id: &TicketId, detail: Value) -> Entry {
    Entry { action, subject: Subject::Ticket, subject_id: id.to_string(), detail }
}
