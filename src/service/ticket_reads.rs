//! Use-cases that read tickets and the records to which they refer.

use std::collections::HashMap;

use super::{Error, Result, Service};
use crate::domain::{
    custom_fields::FieldKind,
    ids::{StoreId, TicketId},
    paging::{Page, PageRequest},
    ticket_field_filters::FieldTest,
    ticket_filters::{FieldFilter, TicketFilter},
    tickets::{Ticket, TicketExpand, TicketView},
};

impl Service {
    pub async fn ticket(&self, store: &StoreId, id: &TicketId, expand: TicketExpand) -> Result<TicketView> {
        let found = self.db().ticket(store, id).await?;
        let ticket = found.ok_or_else(|| Error::missing("ticketId", "ticket", id))?;
        let mut views = self.expand_tickets(store, vec![ticket], expand).await?;
        views.pop().ok_or_else(|| Error::Internal(format!("ticket {id} was not expanded")))
    }

    /// Returns a page of tickets, the ticket with the newest message first.
    pub async fn tickets(
        &self,
        store: &StoreId,
        mut filter: TicketFilter,
        page: PageRequest,
        expand: TicketExpand,
    ) -> Result<Page<TicketView>> {
        let shown = filter.shown(self.rules().conversation_history);
        let tests = self.field_tests(store, std::mem::take(&mut filter.fields)).await?;
        let Page { rows, next, total } = self.db().tickets(store, &filter, shown, &tests, self.clocks_and_ids().now(), &page).await?;
        Ok(Page { rows: self.expand_tickets(store, rows, expand).await?, next, total })
    }

    /// Checks the field filters against the field definitions, which are read in one statement. Returns the filters in the form that
    /// queries use.
    async fn field_tests(&self, store: &StoreId, filters: Vec<FieldFilter>) -> Result<Vec<FieldTest>> {
        let ids = filters.iter().map(|filter| &filter.field_id).filter(|id| FieldKind::of_system_key(id.as_str()).is_none()).collect();
        let kinds = self.db().kinds_of_ticket_fields(store, ids).await?;
        let test = |(i, filter): (usize, FieldFilter)| {
            let place = || format!("body.advancedFilters.ticketFields[{i}]");
            let kind = FieldKind::of_system_key(filter.field_id.as_str())
                .or_else(|| kinds.get(&filter.field_id).copied())
                .ok_or_else(|| Error::invalid(place(), format!("names the unknown ticket field `{}`", filter.field_id)))?;
            filter.test(kind).map_err(|reason| Error::invalid(place(), reason.to_string()))
        };
        filters.into_iter().enumerate().map(test).collect()
    }

    /// Adds related records to tickets, with at most one statement each for accounts, conversations and users.
    pub(super) async fn expand_tickets(&self, store: &StoreId, tickets: Vec<Ticket>, expand: TicketExpand) -> Result<Vec<TicketView>> {
        let accounts = match expand.account {
            true => self.db().account_refs(store, tickets.iter().map(|ticket| &ticket.account_id).collect()).await?,
            false => HashMap::new(),
        };
        let conversations = match expand.conversation {
            true => self.db().conversation_refs(store, tickets.iter().map(|ticket| &ticket.conversation_id).collect()).await?,
            false => HashMap::new(),
        };
        let assignees = tickets.iter().filter(|_| expand.assignee).filter_map(|ticket| ticket.assignee_user_id.as_ref());
        let handlers = tickets.iter().filter(|_| expand.handled_by).filter_map(|ticket| ticket.handled_by.as_ref());
        let users = self.user_refs(store, assignees.chain(handlers).collect()).await?;
        let view = |ticket: Ticket| TicketView {
            account: accounts.get(ticket.account_id.as_str()).cloned(),
            conversation: conversations.get(ticket.conversation_id.as_str()).cloned(),
            assignee: ticket.assignee_user_id.as_ref().filter(|_| expand.assignee).and_then(|id| users.get(id)).cloned(),
            handled_by: ticket.handled_by.as_ref().filter(|_| expand.handled_by).and_then(|id| users.get(id)).cloned(),
            ticket,
        };
        Ok(tickets.into_iter().map(view).collect())
    }
}
