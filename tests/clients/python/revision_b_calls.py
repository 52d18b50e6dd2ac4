"""Typed calls that only the newer API revision has. They run after those of common_calls.py."""

import os
from http import HTTPStatus
from uuid import UUID

from contract_client import AuthenticatedClient
from contract_client.api.messages import search_messages
from contract_client.api.tickets import assign_tickets
from contract_client.models import (
    ErrorEnvelope,
    MessageSearchHitListEnvelope,
    Ticket,
    TicketAssignment,
    TicketExpand,
    TicketListEnvelope,
)
from contract_client.types import Response, Unset

client = AuthenticatedClient(
    os.environ["COUNTERPART_URL"], token=os.environ["COUNTERPART_KEY"], auth_header_name="x-api-key", prefix=""
)

found = search_messages.sync(client=client, query="talk 3")
assert isinstance(found, MessageSearchHitListEnvelope), found
assert found.data[0].id == "message-3-1" and found.data[0].sent_by_recipient, found


def assign(*tickets: str) -> Response[ErrorEnvelope | TicketListEnvelope]:
    user = UUID("5eed0000-0000-4000-8000-000000000002")
    items = [TicketAssignment(ticket_id=ticket, assignee_user_id=user) for ticket in tickets]
    return assign_tickets.sync_detailed(client=client, body=items, expand=[TicketExpand.ASSIGNEE])


def assignee(ticket: Ticket) -> str:
    assert not isinstance(ticket.assignee, Unset)
    return ticket.assignee.name


assigned = assign("ticket-4", "ticket-1").parsed
assert isinstance(assigned, TicketListEnvelope), assigned
assert [(ticket.id, assignee(ticket)) for ticket in assigned.data] == [
    ("ticket-4", "Ken Tanaka"),
    ("ticket-1", "Ken Tanaka"),
], assigned
twice = assign("ticket-5", "ticket-5")
assert twice.status_code == HTTPStatus.BAD_REQUEST and isinstance(twice.parsed, ErrorEnvelope), twice
