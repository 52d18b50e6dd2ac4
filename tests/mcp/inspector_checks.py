"""Checks the responses that inspector.sh stored in a folder, each in a file with the name of its request."""

import json
import pathlib
import sys

import jsonschema

CALLED = {
    "guide": "get_inbox_guide", "first": "list_tickets", "second": "list_tickets", "ticket": "get_ticket", "thread": "read_thread",
    "contacts": "find_contacts",
}

folder = pathlib.Path(sys.argv[1])
answers = {name: json.loads((folder / name).read_text())["result"] for name in ["tools", "error", *CALLED]}
tools = {tool["name"]: tool for tool in answers["tools"]["tools"]}
for tool in tools.values():
    jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
    jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])

content = {}
for name, tool in CALLED.items():
    answer = answers[name]
    assert not answer.get("isError"), answer
    content[name] = answer["structuredContent"]
    jsonschema.Draft202012Validator(tools[tool]["outputSchema"]).validate(content[name])
    assert json.loads(answer["content"][0]["text"]) == content[name], f"{name}: the text is not the same JSON"

pages = [ticket["id"] for page in ("first", "second") for ticket in content[page]["items"]]
assert len(pages) == len(set(pages)) == 6, pages
assert content["ticket"]["id"] == pages[0], content["ticket"]
assert content["guide"]["storeId"] == "demo", content["guide"]
assert content["thread"]["items"] and content["contacts"]["items"], (content["thread"], content["contacts"])
text = answers["error"]["content"][0]["text"]
assert answers["error"]["isError"] and "list_tickets" in text and "no-such-ticket" in text, text
print(f"{len(tools)} tools, {len(CALLED)} calls, 1 error")
