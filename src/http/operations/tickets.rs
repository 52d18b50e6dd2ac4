//! Ticket operations: the handlers for tickets and ticket fields (contract, sections 2.2, 2.4 and 4.1). The schema of a ticket depends on
//! the revision of the contract (A or B): see [`crate::revision::wire`].

use poem_openapi::OpenApi;

use crate::{
    domain::{
        ids::TicketId,
        tickets::{TicketExpand, TicketView},
    },
    http::{
        machinery::{
            auth::{Authorised, TicketsRead, TicketsWrite},
            body::{Body, FilterBody},
            error_responses::{Change, Failure, FilteredListing, Listing, Lookup, StampedChange},
            expand_parameter::{Expand, FieldExpand},
            idempotency::IdempotencyKey,
            paging::{OpenedCursor, Paged},
            params::{CursorText, Id, PageSize, Query, Required},
            success_responses::{All, One, Reply},
        },
        schemas::{
            field_definitions::TicketField,
            ticket_filters::TicketFilters,
            write_inputs::{TicketClosing, TicketFieldUpdate},
        },
    },
    revision::wire::{PageParam, Ticket},
};

/// Read operations on tickets.
#[derive(Debug)]
pub struct TicketReads;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Tickets")]
impl TicketReads {
    /// Get a ticket
    ///
    /// Returns one ticket of the store.
    #[oai(path = "/tickets", method = "get", operation_id = "getTicket")]
    async fn get_ticket(
        &self,
        request: Authorised<TicketsRead>,
        /// The ticket to return.
        #[oai(name = "ticketId")]
        ticket_id: Query<Required<Id<TicketId>>>,
        /// Related records to return as objects in place of `accountId`, `conversationId`, `assigneeUserId` or `handledBy`.
        expand: Query<Expand<TicketExpand>>,
    ) -> Result<Reply<One<Ticket>>, Failure<Lookup>> {
        let ticket = request.reads().ticket(request.store(), &ticket_id.0.0.0, expand.0.0).await?;
        Ok(Reply::one(&request, ticket.into()))
    }

    /// List tickets
    ///
    /// Lists tickets that match the filters, the one with the newest message first.
    #[oai(path = "/tickets/list", method = "post", operation_id = "listTickets")]
    async fn list_tickets(
        &self,
        request: Authorised<TicketsRead>,
        filters: FilterBody<TicketFilters>,
        /// Tickets per page.
        #[oai(name = "pageSize")]
        page_size: Query<PageSize>,
        /// The `x-pagination-next-cursor` header of the previous page; absent for the first page.
        cursor: Query<CursorText>,
        /// A page number that the answer repeats in `x-pagination-page`. It does not select records; `cursor` does.
        page: PageParam,
        /// Related records to return as objects in place of `accountId`, `conversationId`, `assigneeUserId` or `handledBy`.
        expand: Query<Expand<TicketExpand>>,
    ) -> Result<Reply<Paged<Ticket>>, Failure<FilteredListing>> {
        let opened = OpenedCursor::read(&request, "listTickets", &cursor.0)?;
        let (filters, spelled) = filters.filters()?;
        let filter = filters.check()?;
        let walk = opened.step(&request, page_size.0.0, &page, &spelled)?;
        let tickets = request.reads_many().await?.tickets(request.store(), filter, walk.request(), expand.0.0).await?;
        Ok(walk.reply(&request, tickets))
    }

    /// List ticket fields
    ///
    /// Lists every ticket field definition of the store in display order, without pagination.
    #[oai(path = "/tickets/fields", method = "get", operation_id = "listTicketFields")]
    async fn list_ticket_fields(
        &self,
        request: Authorised<TicketsRead>,
        /// Adds the accounts that each field is shown for.
        expand: Query<Expand<FieldExpand>>,
    ) -> Result<Reply<All<TicketField>>, Failure<Listing>> {
        let fields = request.reads_many().await?.ticket_fields(request.store(), expand.0.0.0).await?;
        Ok(Reply::all(&request, fields))
    }
}

/// Write operations on tickets.
#[derive(Debug)]
pub struct TicketWrites;

#[OpenApi(tag = "crate::http::openapi::openapi_tags::Tag::Tickets")]
impl TicketWrites {
    /// Update a ticket field
    ///
    /// Sets or unsets one field of a ticket. If `ticketFieldsUpdatedAt` is sent and out of date, nothing is written and the
    /// answer is 409.
    #[oai(path = "/tickets/field-values", method = "patch", operation_id = "updateTicketField")]
    async fn update_ticket_field(
        &self,
        request: Authorised<TicketsWrite>,
        body: Body<TicketFieldUpdate>,
        /// Related records to return as objects in place of `accountId`, `conversationId`, `assigneeUserId` or `handledBy`.
        expand: Query<Expand<TicketExpand>>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<One<Ticket>>, Failure<StampedChange>> {
        let update = body.parse()?;
        let by = request.by::<TicketView, Ticket, _, _>("updateTicketField", &key, &body);
        let outcome = request.state.service.update_ticket_field(&by, update.into(), expand.0.0).await?;
        Ok(Reply::written::<_, Ticket>(&request, outcome))
    }

    /// Close a ticket
    ///
    /// Closes a ticket and records the other values of the request. A ticket that is already closed keeps its `closedAt`.
    #[oai(path = "/tickets/close", method = "post", operation_id = "closeTicket")]
    async fn close_ticket(
        &self,
        request: Authorised<TicketsWrite>,
        body: Body<TicketClosing>,
        /// Related records to return as objects in place of `accountId`, `conversationId`, `assigneeUserId` or `handledBy`.
        expand: Query<Expand<TicketExpand>>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<One<Ticket>>, Failure<Change>> {
        let closing = body.parse()?.check()?;
        let by = request.by::<TicketView, Ticket, _, _>("closeTicket", &key, &body);
        let outcome = request.state.service.close_ticket(&by, closing, expand.0.0).await?;
        Ok(Reply::written::<_, Ticket>(&request, outcome))
    }
}
