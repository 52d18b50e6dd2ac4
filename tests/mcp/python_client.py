"""Tests the assistant tools with MCP's official Python SDK: over HTTP and over standard input and output, in each era of the protocol
(legacy: before revision 2026-07-28; modern: from this revision on).

    python_client.py BINARY      in a Python that has the packages of requirements.txt

Lists the tools, calls five of them, checks structured content against the output schemas, reads two pages, and provokes an error.
"""

import asyncio
import json
import sys
import traceback

import httpx2
import jsonschema
import mcp
from mcp.client.streamable_http import streamable_http_client

from start_servers import demo, sending

READS = {"get_inbox_guide", "list_tickets", "get_ticket", "find_contacts", "read_thread"}


class Calls:
    """The calls of one connection; each result is checked."""

    def __init__(self, client, tools):
        self.client, self.tools, self.checks = client, tools, 0

    def holds(self, condition, what):
        assert condition, what
        self.checks += 1

    async def call(self, name, **arguments):
        result = await self.client.call_tool(name, arguments)
        self.holds(not result.is_error, f"{name} {arguments}: {result.content}")
        content = result.structured_content
        jsonschema.Draft202012Validator(self.tools[name].output_schema).validate(content)
        self.checks += 1
        self.holds(len(result.content) == 1 and json.loads(result.content[0].text) == content, f"{name}: the text is not the same JSON")
        return content

    async def error(self, name, **arguments):
        result = await self.client.call_tool(name, arguments)
        self.holds(result.is_error and result.structured_content is None, f"{name} {arguments} is not an error: {result}")
        return result.content[0].text


async def conversation(client):
    """Makes the calls of a client. Returns the number of checks and the number of tools."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    calls = Calls(client, tools)
    calls.holds(READS <= set(tools), f"the tools are {sorted(tools)}")
    for tool in tools.values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        calls.holds(tool.description and tool.annotations and tool.annotations.read_only_hint is not None, f"{tool.name}: no hints")
    calls.holds(all(tools[name].annotations.read_only_hint for name in READS), "a tool that reads does not say so")
    calls.holds("get_inbox_guide" in (client.instructions or ""), "the instructions do not say with what to begin")

    guide = await calls.call("get_inbox_guide")
    calls.holds(guide["storeId"] == "demo" and "tickets:read" in guide["scopes"], f"the guide is {guide}")

    first = await calls.call("list_tickets", pageSize=3)
    calls.holds(len(first["items"]) == 3 and first["nextCursor"], f"the first page is {first}")
    second = await calls.call("list_tickets", pageSize=3, cursor=first["nextCursor"])
    ids = [ticket["id"] for ticket in first["items"] + second["items"]]
    calls.holds(len(set(ids)) == 6, f"two pages of tickets: {ids}")

    ticket = await calls.call("get_ticket", ticketId=ids[0])
    calls.holds(ticket["id"] == ids[0], f"the ticket is {ticket}")
    thread = await calls.call("read_thread", conversationId=first["items"][0]["conversationId"])
    calls.holds(thread["items"], f"the thread is {thread}")
    contact = await client.call_tool("get_contact", {"contactId": ticket["contactId"]})
    name = contact.structured_content["firstName"]
    found = await calls.call("find_contacts", query=name)
    calls.holds(any(item["id"] == ticket["contactId"] for item in found["items"]), f"{name} finds {found}")

    text = await calls.error("get_ticket", ticketId="no-such-ticket")
    calls.holds("list_tickets" in text and "no-such-ticket" in text, f"the error is {text}")
    text = await calls.error("get_ticket")
    calls.holds("ticketId" in text, f"the error is {text}")
    return calls.checks, len(tools)


def http_client(server):
    return httpx2.AsyncClient(headers={"x-api-key": server.key}, timeout=30)


def causes(error):
    """Returns the errors in an exception group."""
    if isinstance(error, BaseExceptionGroup):
        return [cause for inner in error.exceptions for cause in causes(inner)]
    return [error]


async def refusal(server):
    """Connects without a key, which must fail. Returns the error."""
    try:
        async with mcp.Client(server.url, mode="legacy"):
            pass
    except Exception as error:
        return "; ".join(f"{type(cause).__name__}: {cause}" for cause in causes(error))
    raise AssertionError("a connection without a key is accepted")


async def consent(server, url):
    """Sends messages with a client whose user first declines, then accepts, in each era of the protocol. Returns the number of checks."""
    checks = 0
    for mode in ["legacy", "auto"]:
        text, seen = f"Hello over {mode}", []
        for action, status in [("decline", "declined"), ("accept", "sent")]:

            async def person(_, question):
                seen.append(question.message)
                return mcp.types.ElicitResult(action=action, content={} if action == "accept" else None)

            async with http_client(server) as http, mcp.Client(
                streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=person
            ) as client:
                # Chooses a ticket of the web chat channel (`widget`), since this channel accepts a text at any time.
                tickets = (await client.call_tool("list_tickets", {"pageSize": 50})).structured_content["items"]
                conversation = next(ticket["conversationId"] for ticket in tickets if ticket["channel"] == "widget")
                sent = (await client.call_tool("send_message", {"conversationId": conversation, "text": text})).structured_content
                assert sent["status"] == status and text in seen[-1] and conversation in seen[-1], (sent, seen)
                thread = (await client.call_tool("read_thread", {"conversationId": conversation, "pageSize": 1})).structured_content
                newest = thread["items"][0]
                assert (newest.get("text") or newest.get("payload", {}).get("text")) == text or action == "decline", newest
                checks += 2
        assert len(seen) == 2, seen
    return checks


async def main(binary):
    total = 0
    with demo(binary) as server:
        for mode, version in [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]:
            async with http_client(server) as http, mcp.Client(streamable_http_client(server.url, http_client=http), mode=mode) as client:
                assert client.protocol_version == version, client.protocol_version
                # If `mode` is a version of the protocol, the SDK does not ask the server to describe itself, so fewer checks are possible.
                if mode == "2026-07-28":
                    tools = await client.list_tools()
                    guide = await client.call_tool("get_inbox_guide", {})
                    assert not guide.is_error and len(tools.tools) >= 19
                    checks = 2
                else:
                    checks, count = await conversation(client)
                    assert count >= 19, f"the key has all scopes, but {count} tools"
            print(f"HTTP, {mode}, {version}: {checks} checks")
            total += checks
        for options, least, most in [([], 10, 15), (["--write"], 19, 30)]:
            for mode, version in [("legacy", "2025-11-25"), ("auto", "2026-07-28")]:
                program = mcp.StdioServerParameters(command=binary, args=["mcp", *options], env=server.of_mcp)
                async with mcp.Client(program, mode=mode) as client:
                    assert client.protocol_version == version, client.protocol_version
                    checks, count = await conversation(client)
                    assert least <= count <= most, f"mcp {options}: {count} tools"
                print(f"stdio{''.join(f', {option}' for option in options)}, {mode}, {version}: {checks} checks")
                total += checks
        with sending(binary, server) as url:
            checks = await consent(server, url)
        print(f"HTTP, with a person who is asked: {checks} checks")
        total += checks
        print(f"HTTP without a key: {await refusal(server)}")
        total += 1
        assert "panicked" not in open(server.log).read(), "the server panicked"
    print(f"Python SDK: {total} checks hold")


if len(sys.argv) != 2:
    raise SystemExit(f"usage: {sys.argv[0]} BINARY")
try:
    asyncio.run(main(sys.argv[1]))
except BaseExceptionGroup as group:
    # The SDK wraps an error that occurs inside a connection in several exception groups.
    for cause in causes(group):
        traceback.print_exception(cause)
    sys.exit(1)
