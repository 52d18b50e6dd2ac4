// Typed calls that only the newer API revision has. They run after those of common_calls.ts.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./document.js";

const { COUNTERPART_URL: baseUrl = "", COUNTERPART_KEY: key = "" } = process.env;
const client = createClient<paths>({ baseUrl, headers: { "x-api-key": key } });

const found = await client.GET("/messages/search", { params: { query: { query: "talk 3" } } });
assert(found.data, `search answers ${found.response.status}`);
const [hit] = found.data.data;
assert.deepEqual([hit?.id, hit?.sentByRecipient], ["message-3-1", true]);

const assign = (...ticketIds: string[]) =>
  client.POST("/tickets/assign", {
    params: { query: { expand: ["assignee"] } },
    body: ticketIds.map((ticketId) => ({ ticketId, assigneeUserId: "5eed0000-0000-4000-8000-000000000002" })),
  });
const assigned = await assign("ticket-4", "ticket-1");
assert(assigned.data, `assign answers ${assigned.response.status}`);
assert.deepEqual(
  assigned.data.data.map((ticket) => [ticket.id, ticket.assignee?.name]),
  [["ticket-4", "Ken Tanaka"], ["ticket-1", "Ken Tanaka"]],
);
const twice = await assign("ticket-5", "ticket-5");
assert.deepEqual([twice.response.status, twice.error?.error.statusCode], [400, 400]);
