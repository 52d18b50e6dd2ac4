//! Assigning tickets. Revision B alone has it.

use poem_openapi::OpenApi;

use super::ticket::Ticket;
use crate::{
    domain::tickets::{TicketExpand, TicketView},
    http::{
        document::tags::Tag,
        machinery::{
            auth::{Authorised, TicketsWrite},
            body::Body,
            error::{Change, Failure},
            expand::Expand,
            idempotency::IdempotencyKey,
            params::Query,
            reply::{All, Reply},
        },
        schemas::{
            value_types::{Limited, Many},
            write_inputs::TicketAssignment,
        },
    },
};

/// Assigning tickets.
#[derive(Debug)]
pub struct Assignments;

#[OpenApi(tag = "Tag::Tickets")]
impl Assignments {
    /// Assign tickets
    ///
    /// Assigns open tickets to users: all of them or, if one cannot be assigned, none. The tickets come back in the order
    /// of the request.
    #[oai(path = "/tickets/assign", method = "post", operation_id = "assignTickets")]
    async fn assign_tickets(
        &self,
        request: Authorised<TicketsWrite>,
        body: Body<Limited<TicketAssignment, 50>>,
        /// Replaces `accountId`, `conversationId`, `assigneeUserId` or `handledBy` by an object.
        expand: Query<Expand<TicketExpand>>,
        /// Makes a repeated request answer what the first one did, for 24 hours.
        #[oai(name = "Idempotency-Key")]
        key: IdempotencyKey,
    ) -> Result<Reply<All<Ticket>>, Failure<Change>> {
        let items = TicketAssignment::check(body.parse()?.0)?;
        let by = request.by::<Vec<TicketView>, Many<Ticket>, _, _>("assignTickets", &key, &body);
        let outcome = request.state.service.assign_tickets(&by, items, expand.0.0).await?;
        Ok(Reply::written::<_, Many<Ticket>>(&request, outcome))
    }
}
