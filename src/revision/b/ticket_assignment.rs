//! The operation that assigns tickets to users. Only revision B of the API has this operation.

use poem_openapi::OpenApi;

use super::ticket_schema::Ticket;
use crate::{
    domain::tickets::{TicketExpand, TicketView},
    http::{
        machinery::{
            auth::{Authorised, TicketsWrite},
            body::Body,
            error_responses::{Change, Failure},
            expand_parameter::Expand,
            idempotency::IdempotencyKey,
            params::Query,
            success_responses::{All, Reply},
        },
        openapi::openapi_tags::Tag,
        schemas::{
            value_types::{Limited, Many},
            write_inputs::TicketAssignment,
        },
    },
};

/// The operation that assigns tickets.
#[derive(Debug)]
pub struct Assignments;

#[OpenApi(tag = "Tag::Tickets")]
impl Assignments {
    /// Assign tickets
    ///
    /// Assigns open tickets to users. If one ticket cannot be assigned, none is assigned. The answer has the tickets in the order
    /// of the request.
    #[oai(path = "/tickets/assign", method = "post", operation_id = "assignTickets")]
    async fn assign_tickets(
        &self,
        request: Authorised<TicketsWrite>,
        body: Body<Limited<TicketAssignment, 50>>,
        /// Related records to return as objects in place of `accountId`, `conversationId`, `assigneeUserId` or `handledBy`.
        expand: Query<Expand<TicketExpand>>,
        /// For 24 hours after a success, a repeated request with the same key changes nothing and gets the same `data`.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<All<Ticket>>, Failure<Change>> {
        let items = TicketAssignment::check(body.parse()?.0)?;
        let by = request.by::<Vec<TicketView>, Many<Ticket>, _, _>("assignTickets", &key, &body);
        let outcome = request.state.service.assign_tickets(&by, items, expand.0.0).await?;
        Ok(Reply::written::<_, Many<Ticket>>(&request, outcome))
    }
}
