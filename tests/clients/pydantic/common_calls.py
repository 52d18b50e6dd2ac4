"""Calls that both API revisions have, with the Python client that openapi-generator generates from the document."""

import os

import contract_client
from contract_client.models import KnownChannel, TextInput, TicketExpand, TicketFieldUpdate, TicketFilters, TicketStatus

configuration = contract_client.Configuration(
    host=os.environ["COUNTERPART_URL"], api_key={"ApiKey": os.environ["COUNTERPART_KEY"]}
)
client = contract_client.ApiClient(configuration)
tickets, messages = contract_client.TicketsApi(client), contract_client.MessagesApi(client)

first = tickets.list_tickets_with_http_info(page_size=2, ticket_filters=TicketFilters(statuses=[TicketStatus.OPEN]))
assert [ticket.id for ticket in first.data.data] == ["ticket-5", "ticket-4"], first
cursor = first.headers["x-pagination-next-cursor"]
second = tickets.list_tickets(page_size=2, cursor=cursor, ticket_filters=TicketFilters(statuses=[TicketStatus.OPEN]))
assert [ticket.id for ticket in second.data] == ["ticket-3", "ticket-2"], second

ticket = tickets.get_ticket("ticket-3", expand=[TicketExpand.ACCOUNT]).data
assert ticket.account.name == "Shop on gmail", ticket
assert ticket.account.channel.actual_instance == KnownChannel.GMAIL, ticket
assert ticket.ticket_fields.additional_properties["items"] == 2, ticket

update = TicketFieldUpdate(ticket_id="ticket-3", ticket_field_id="items", new_value="seven")
try:
    tickets.update_ticket_field(update)
    raise AssertionError("no failure of the API")
except contract_client.ApiException as refused:
    assert refused.status == 400 and refused.data.error.message.startswith("`body.newValue`"), refused

assert messages.send_text_message(TextInput(conversation_id="conv-4", text="Hello!")).data.message == "OK"
