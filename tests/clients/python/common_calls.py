"""Typed calls that both API revisions have, with the client package that openapi-python-client generates from the document."""

import os
from http import HTTPStatus

from contract_client import AuthenticatedClient
from contract_client.api.messages import send_text_message
from contract_client.api.tickets import get_ticket, list_tickets, update_ticket_field
from contract_client.models import (
    AcknowledgementEnvelope,
    ErrorEnvelope,
    KnownChannel,
    TextInput,
    Ticket,
    TicketEnvelope,
    TicketExpand,
    TicketFieldUpdate,
    TicketFilters,
    TicketListEnvelope,
    TicketStatus,
)
from contract_client.types import UNSET, Response, Unset

client = AuthenticatedClient(
    os.environ["COUNTERPART_URL"], token=os.environ["COUNTERPART_KEY"], auth_header_name="x-api-key", prefix=""
)


def page(cursor: str | Unset = UNSET) -> tuple[list[str], Response[ErrorEnvelope | TicketListEnvelope]]:
    answer = list_tickets.sync_detailed(
        client=client, body=TicketFilters(statuses=[TicketStatus.OPEN]), page_size=2, cursor=cursor
    )
    assert isinstance(answer.parsed, TicketListEnvelope), answer
    return [ticket.id for ticket in answer.parsed.data], answer


def get(*expand: TicketExpand) -> Ticket:
    answer = get_ticket.sync(client=client, ticket_id="ticket-3", expand=list(expand))
    assert isinstance(answer, TicketEnvelope), answer
    return answer.data


def items(ticket: Ticket) -> object:
    assert not isinstance(ticket.ticket_fields, Unset)
    return ticket.ticket_fields["items"]


ids, answer = page()
assert ids == ["ticket-5", "ticket-4"], ids
assert answer.headers.get("x-pagination-total") == ("5" if os.environ["COUNTERPART_REVISION"] == "rev-a" else None)
ids, answer = page(answer.headers["x-pagination-next-cursor"])
assert ids == ["ticket-3", "ticket-2"], ids

ticket = get(TicketExpand.ACCOUNT, TicketExpand.ASSIGNEE)
assert not isinstance(ticket.account, Unset) and ticket.account.name == "Shop on gmail", ticket
assert not isinstance(ticket.assignee, Unset) and ticket.assignee.name == "Linh Nguyễn", ticket
assert items(ticket) == 2, ticket
stamp = ticket.ticket_fields_updated_at
assert not isinstance(stamp, Unset)


def write(value: object) -> Response[ErrorEnvelope | TicketEnvelope]:
    update = TicketFieldUpdate(
        ticket_id="ticket-3", ticket_field_id="items", new_value=value, ticket_fields_updated_at=stamp
    )
    return update_ticket_field.sync_detailed(client=client, body=update)


written = write(7).parsed
assert isinstance(written, TicketEnvelope) and items(written.data) == 7, written
assert not isinstance(written.data.ticket_fields_updated_at, Unset) and written.data.ticket_fields_updated_at > stamp

for value, status, member in [
    ("seven", HTTPStatus.BAD_REQUEST, "body.newValue"),
    (8, HTTPStatus.CONFLICT, "body.ticketFieldsUpdatedAt"),
]:
    refused = write(value)
    assert refused.status_code == status, refused
    assert isinstance(refused.parsed, ErrorEnvelope) and refused.parsed.error.status_code == status, refused
    assert refused.parsed.error.message.startswith(f"`{member}`"), refused
assert items(get()) == 7
assert ticket.account.channel == KnownChannel.GMAIL, ticket

sent = send_text_message.sync(client=client, body=TextInput(conversation_id="conv-4", text="Hello!"))
assert isinstance(sent, AcknowledgementEnvelope) and sent.data.message == "OK", sent
