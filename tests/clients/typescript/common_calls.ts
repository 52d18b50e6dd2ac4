// Typed calls that both API revisions have, with openapi-fetch and the types that openapi-typescript generates from the document.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./document.js";

const { COUNTERPART_URL: baseUrl = "", COUNTERPART_KEY: key = "", COUNTERPART_REVISION: revision = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { "x-api-key": key } });

async function page(cursor?: string): Promise<{ ids: string[]; next: string | null; total: string | null }> {
  const { data, response } = await client.POST("/tickets/list", {
    params: { query: cursor === undefined ? { pageSize: 2 } : { pageSize: 2, cursor } },
    body: { statuses: ["open"] },
  });
  assert(data, `list answers ${response.status}`);
  const { headers } = response;
  return { ids: data.data.map((ticket) => ticket.id), next: headers.get("x-pagination-next-cursor"), total: headers.get("x-pagination-total") };
}

const first = await page();
assert.deepEqual(first.ids, ["ticket-5", "ticket-4"]);
assert.equal(first.total, revision === "rev-a" ? "5" : null);
assert(first.next);
const second = await page(first.next);
assert.deepEqual(second.ids, ["ticket-3", "ticket-2"]);

const read = await client.GET("/tickets", { params: { query: { ticketId: "ticket-3", expand: ["account", "assignee"] } } });
assert(read.data, `get answers ${read.response.status}`);
const ticket: components["schemas"]["Ticket"] = read.data.data;
assert.deepEqual(ticket.account, { id: "acc-gmail", name: "Shop on gmail", channel: "gmail" });
assert.equal(ticket.assignee?.name, "Linh Nguyễn");
assert.equal(ticket.ticketFields?.["items"], 2);
const stamp = ticket.ticketFieldsUpdatedAt;
assert(stamp);

const write = (newValue: unknown) =>
  client.PATCH("/tickets/field-values", {
    body: { ticketId: "ticket-3", ticketFieldId: "items", newValue, ticketFieldsUpdatedAt: stamp },
  });
const written = await write(7);
assert(written.data, `the write answers ${written.response.status}`);
assert.equal(written.data.data.ticketFields?.["items"], 7);
assert((written.data.data.ticketFieldsUpdatedAt ?? "") > stamp);

function refused(answer: Awaited<ReturnType<typeof write>>, status: number, member: string): void {
  assert(answer.error, `expected a refusal, got ${answer.response.status}`);
  const failure: components["schemas"]["ErrorDetail"] = answer.error.error;
  assert.deepEqual([answer.response.status, failure.statusCode], [status, status]);
  assert(failure.message.startsWith(`\`${member}\``), failure.message);
}
refused(await write("seven"), 400, "body.newValue");
refused(await write(8), 409, "body.ticketFieldsUpdatedAt");

const after = await client.GET("/tickets", { params: { query: { ticketId: "ticket-3" } } });
assert.equal(after.data?.data.ticketFields?.["items"], 7);

// The type `KnownChannel` has the channels that the document lists. The type `Channel` also allows any other text.
type Known = components["schemas"]["KnownChannel"];
const gmail: Known = "gmail";
const channel: components["schemas"]["Channel"] | undefined = ticket.account?.channel;
assert.equal(channel, gmail);

const sent = await client.POST("/messages", { body: { conversationId: "conv-4", text: "Hello!" } });
assert.equal(sent.data?.data.message, "OK", `the send answers ${sent.response.status}`);
