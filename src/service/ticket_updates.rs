//! Use-cases that change tickets: set fields, close, assign.

use std::collections::{HashMap, HashSet};

use iso_currency::Currency;
use serde_json::Value;

use super::{
    Error, Result, Service, WriteContext, WriteOutcome,
    write_transaction::{WriteTransaction, begin},
};
use crate::{
    domain::{
        custom_fields::{Field, FieldKind, MAX_VALUES},
        decimal_amounts::amount,
        events::{EventChange, FieldChange},
        ids::{AccountId, FieldId, TicketId, UserId},
        ordered_object::Entries,
        tickets::{Ticket, TicketExpand, TicketView},
        time::Timestamp,
    },
    store::field_definitions::FieldOwner,
};

/// A new value of a field of a ticket.
#[derive(Debug)]
pub struct FieldUpdate {
    pub ticket_id: TicketId,
    pub field_id: FieldId,
    /// `null` removes the value.
    pub value: Value,
    /// The version stamp (time of the last change) that the client has seen, for optimistic locking. Absent: overwrite.
    pub stamp: Option<Timestamp>,
}

/// The parameters with which a ticket is closed.
#[derive(Debug)]
pub struct Closing {
    pub ticket_id: TicketId,
    pub handled_by: Option<UserId>,
    pub is_converted: Option<bool>,
    /// The revenue in `currency` or, if that is absent, in the store's currency. It is the text of a JSON number, so that no digit is lost.
    pub total_revenue: Option<String>,
    pub currency: Option<String>,
    pub fields: Entries,
}

/// A new assignee of a ticket.
#[derive(Debug)]
pub struct Assignment {
    pub ticket_id: TicketId,
    pub assignee: UserId,
}

impl Service {
    pub async fn update_ticket_field(
        &self,
        by: &WriteContext<'_, TicketView>,
        update: FieldUpdate,
        expand: TicketExpand,
    ) -> Result<WriteOutcome<TicketView>> {
        let mut judged =
            self.validate_patterns(by.store, FieldOwner::Ticket, MAX_VALUES, &[(update.field_id.clone(), &update.value)]).await?;
        let mut change = begin!(self, by);
        let mut ticket =
            change.ticket(&update.ticket_id).await?.ok_or_else(|| Error::missing("body.ticketId", "ticket", &update.ticket_id))?;
        if FieldKind::of_system_key(update.field_id.as_str()).is_some() {
            return Err(Error::invalid("body.ticketFieldId", "names a system key, which is read-only"));
        }
        let field = change
            .ticket_field(&update.field_id)
            .await?
            .ok_or_else(|| Error::missing("body.ticketFieldId", "ticket field", &update.field_id))?;
        must_be_active(&field, "body.ticketFieldId")?;
        let value = judged.value(&field, MAX_VALUES, update.value).map_err(|reason| Error::invalid("body.newValue", reason.to_string()))?;
        if update.stamp.is_some() && update.stamp != ticket.fields_updated_at {
            return Err(Error::conflict("body.ticketFieldsUpdatedAt", "is not the ticket's; its fields changed since it was read"));
        }
        let changed = set_fields(&change, &mut ticket, vec![(field.id.clone(), field.kind(), value)]).await?;
        if !changed.is_empty() {
            change.save_ticket(&ticket).await?;
        }
        for field in changed {
            change.note(EventChange::TicketFieldUpdated { ticket: ticket.clone(), change: field });
        }
        let view = self.expanded(by, ticket, expand).await?;
        change.finish(by, view).await
    }

    pub async fn close_ticket(
        &self,
        by: &WriteContext<'_, TicketView>,
        closing: Closing,
        expand: TicketExpand,
    ) -> Result<WriteOutcome<TicketView>> {
        let revenue = closing.total_revenue.as_deref().map(exact_amount).transpose()?;
        if let Some(code) = &closing.currency {
            if revenue.is_none() {
                return Err(Error::invalid("body.currency", "goes with `totalRevenue` only"));
            }
            if Currency::from_code(code).is_none() {
                return Err(Error::invalid("body.currency", "must be a currency code of ISO 4217, such as THB"));
            }
        }
        let sent: Vec<_> = closing.fields.0.iter().map(|(key, value)| (FieldId::from(key.as_str()), value)).collect();
        let mut judged = self.validate_patterns(by.store, FieldOwner::Ticket, MAX_VALUES, &sent).await?;
        let mut change = begin!(self, by);
        // To prevent deadlocks, the user is locked before the ticket, as in the removal of a user.
        let handler_known = match &closing.handled_by {
            Some(user) => !change.known_users(&[user]).await?.is_empty(),
            None => true,
        };
        change.lock_conversation_tickets(&closing.ticket_id).await?;
        let mut ticket =
            change.ticket(&closing.ticket_id).await?.ok_or_else(|| Error::missing("body.ticketId", "ticket", &closing.ticket_id))?;
        if !handler_known {
            return Err(Error::invalid("body.handledBy", "names no user of this store"));
        }
        let mut values = Vec::new();
        let mut system =
            |key: &str, value: Value| values.extend(FieldKind::of_system_key(key).map(|kind| (FieldId::from(key), kind, Some(value))));
        if let Some(is_converted) = closing.is_converted {
            system("isConverted", is_converted.into());
        }
        if let Some(revenue) = revenue {
            let currency = match closing.currency {
                Some(code) => Some(code),
                None => change.currency().await?,
            };
            system("salesRevenue", revenue);
            currency.into_iter().for_each(|code| system("salesRevenueCurrency", code.into()));
        }
        for (key, value) in closing.fields.0 {
            let place = format!("body.ticketFields.{key}");
            if FieldKind::of_system_key(&key).is_some() {
                return Err(Error::invalid(place, "is a system key, which is read-only"));
            }
            let field: Field = change
                .ticket_field(&FieldId::from(key))
                .await?
                .ok_or_else(|| Error::invalid(place.as_str(), "is not a ticket field of this store"))?;
            must_be_active(&field, &place)?;
            if value.is_null() {
                return Err(Error::invalid(place, "must not be null; PATCH /tickets/field-values unsets a field"));
            }
            let value = judged.value(&field, MAX_VALUES, value).map_err(|reason| Error::invalid(place, reason.to_string()))?;
            values.push((field.id.clone(), field.kind(), value));
        }
        let changed = set_fields(&change, &mut ticket, values).await?;
        let credited = closing.handled_by.is_some_and(|user| ticket.credit(user, change.now()));
        let closed = ticket.close(change.now());
        if closed || credited || !changed.is_empty() {
            change.save_ticket(&ticket).await?;
        }
        for field in changed {
            change.note(EventChange::TicketFieldUpdated { ticket: ticket.clone(), change: field });
        }
        if closed {
            change.derive_ticket_after(&ticket).await?;
            change.note(EventChange::TicketClosed { ticket: ticket.clone() });
        }
        let view = self.expanded(by, ticket, expand).await?;
        change.finish(by, view).await
    }

    /// Assigns all of the tickets or none. Returns the tickets in the order of the assignments.
    pub async fn assign_tickets(
        &self,
        by: &WriteContext<'_, Vec<TicketView>>,
        items: Vec<Assignment>,
        expand: TicketExpand,
    ) -> Result<WriteOutcome<Vec<TicketView>>> {
        let mut seen = HashSet::new();
        if let Some(i) = items.iter().position(|item| !seen.insert(&item.ticket_id)) {
            return Err(Error::invalid(format!("body[{i}].ticketId"), "is named twice"));
        }
        let mut change = begin!(self, by);
        let ids: Vec<&TicketId> = items.iter().map(|item| &item.ticket_id).collect();
        // To prevent deadlocks, users and accounts are locked before tickets, as in the removal of a user or of a user's access to an
        // account.
        let users: HashSet<UserId> =
            change.known_users(&items.iter().map(|item| &item.assignee).collect::<Vec<_>>()).await?.into_iter().collect();
        change.lock_accounts_shared(&ids).await?;
        let held = change.tickets(&ids).await?;
        let mut tickets: HashMap<TicketId, Ticket> = held.into_iter().map(|ticket| (ticket.id.clone(), ticket)).collect();
        if let Some((i, item)) = items.iter().enumerate().find(|(_, item)| !tickets.contains_key(&item.ticket_id)) {
            return Err(Error::missing(format!("body[{i}].ticketId"), "ticket", &item.ticket_id));
        }
        let accounts: Vec<&AccountId> = tickets.values().map(|ticket| &ticket.account_id).collect();
        let listed = change.account_users(&accounts).await?;
        let mut assigned = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let Some(mut ticket) = tickets.remove(&item.ticket_id) else { continue };
            let handover = ticket.assign(&item.assignee, change.now()).map_err(|refusal| {
                Error::invalid(
                    format!("body[{i}].ticketId"),
                    format!("names a ticket that {refusal}; only open tickets that are not spam are assigned"),
                )
            })?;
            let place = || format!("body[{i}].assigneeUserId");
            if !users.contains(&item.assignee) {
                return Err(Error::invalid(place(), "names no user of this store"));
            }
            let mut lists = listed.iter().filter(|(account, _)| *account == ticket.account_id).peekable();
            if lists.peek().is_some() && !lists.any(|(_, user)| *user == item.assignee) {
                return Err(Error::invalid(place(), "names a user who cannot access the ticket's account"));
            }
            assigned.push((ticket, handover));
        }
        for (ticket, handover) in &assigned {
            let Some(handover) = handover else { continue };
            change.save_ticket(ticket).await?;
            change.note(EventChange::TicketAssigned { ticket: ticket.clone(), previous: handover.previous.clone() });
        }
        let tickets = assigned.into_iter().map(|(ticket, _)| ticket).collect();
        let views = self.expand_tickets(by.store, tickets, expand).await?;
        change.finish(by, views).await
    }

    pub(super) async fn expanded<T>(&self, by: &WriteContext<'_, T>, ticket: Ticket, expand: TicketExpand) -> Result<TicketView> {
        let id = ticket.id.clone();
        self.expand_tickets(by.store, vec![ticket], expand)
            .await?
            .pop()
            .ok_or_else(|| Error::Internal(format!("ticket {id} was not expanded")))
    }
}

/// Sets fields on a ticket in memory, and writes the rows that ticket filters read. The caller saves the ticket. Returns the actual
/// changes, in the order of the request.
async fn set_fields(
    change: &WriteTransaction<'_>,
    ticket: &mut Ticket,
    values: Vec<(FieldId, FieldKind, Option<Value>)>,
) -> Result<Vec<FieldChange>> {
    let mut fields: Entries =
        serde_json::from_str(&ticket.fields).map_err(|error| Error::Internal(format!("ticket {}: {error}", ticket.id)))?;
    let (mut changed, mut compared) = (Vec::new(), Vec::new());
    for (field_id, kind, value) in values {
        let old = fields.get(field_id.as_str()).cloned();
        if old == value {
            continue;
        }
        let comparables = match &value {
            Some(value) => kind.comparables(value).map_err(|error| Error::Internal(error.to_string()))?,
            None => vec![],
        };
        compared.push((field_id.clone(), comparables));
        fields.set(field_id.as_str(), value.clone());
        changed.push(FieldChange { field_id, old, new: value });
    }
    if !changed.is_empty() {
        change.save_field_values(&ticket.id, &compared).await?;
        ticket.fields = serde_json::to_string(&fields).map_err(|error| Error::Internal(error.to_string()))?;
        let stamp = ticket.fields_updated_at.map_or(change.now(), |stamp| stamp.next_stamp(change.now()));
        ticket.fields_updated_at = Some(stamp);
        ticket.updated_at = stamp.max(ticket.updated_at);
    }
    Ok(changed)
}

pub(super) fn must_be_active(field: &Field, place: &str) -> Result<()> {
    if field.active { Ok(()) } else { Err(Error::invalid(place, "names a field that is not active")) }
}

/// Converts an amount of money from the text of a JSON number to its stored form. Fails if the amount is negative or has too many digits.
fn exact_amount(text: &str) -> Result<Value> {
    let wrong = || Error::invalid("body.totalRevenue", "must be 0 or more, with at most 15 digits, four of them behind the point");
    amount(text).ok_or_else(wrong)
}
