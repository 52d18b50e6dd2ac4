// The tab of channel accounts: who may work on each, and the bridge that attaches its channel.

import { add, changed, surely } from "../sections.js";
import { converse, tellSecret } from "../dialogs.js";
import { boxes, one } from "../elements.js";
import { get, known, nameOf, post, put, remove } from "../plane.js";

const ROW = `<template id="account-row"><li>
  <p class="url"><strong data-slot="name"></strong> <span class="badge" data-tone="none" data-slot="channel"></span></p>
  <dl>
    <dt>Open to</dt><dd data-slot="users"></dd>
    <dt>Bridge</dt><dd><code data-slot="bridge"></code></dd>
  </dl>
  <p class="actions">
    <button type="button" class="quiet" data-act="edit-access">Change access</button>
    <button type="button" class="quiet" data-act="set-bridge">Set bridge</button>
    <button type="button" class="quiet" data-act="rotate-bridge">Rotate bridge secret</button>
    <button type="button" class="quiet danger" data-act="remove-bridge">Remove bridge</button>
  </p>
</li></template>`;

const DIALOGS = `<dialog id="access-dialog" aria-labelledby="access-title"><form method="dialog">
  <h2 id="access-title"></h2>
  <fieldset><legend>Users</legend><div class="boxes" id="access-users"></div></fieldset>
  <p class="hint">If nobody is ticked, the account is open to every user. Whoever loses access loses the account's tickets.</p>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">Cancel</button> <button class="main">Save</button></p>
</form></dialog>
<dialog id="bridge-dialog" aria-labelledby="bridge-title"><form method="dialog">
  <h2 id="bridge-title"></h2>
  <label>Address <input name="url" type="url" required maxlength="2048" placeholder="https://example.com/bridge" autocomplete="off" autofocus></label>
  <p class="hint">Messages of the account are handed over there, signed in the form of Standard Webhooks.</p>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">Cancel</button> <button class="main">Save</button></p>
</form></dialog>`;

const account = (id) => view.records.find((account) => account.accountId === id);

// Accounts, each with the address of its bridge if it has one.
async function load() {
  const [accounts, bridges] = await Promise.all([get("/accounts"), get("/accounts/bridge")]);
  const bridgeOf = new Map(bridges.map((bridge) => [bridge.accountId, bridge.url]));
  known.accounts = accounts;
  return accounts.map((account) => ({ ...account, bridge: bridgeOf.get(account.accountId) }));
}

function fillAccount(account, slots, text, button) {
  const { name, channel, userIds, bridge } = account;
  text({ name, channel, users: userIds.length ? userIds.map(nameOf).join(", ") : "every user", bridge: bridge ?? "none" });
  button("set-bridge").textContent = bridge ? "Change bridge" : "Set bridge";
  // The web chat is the server's own channel and takes no bridge.
  button("set-bridge").hidden = channel === "widget";
  button("rotate-bridge").hidden = button("remove-bridge").hidden = !bridge;
}

const acts = {
  async "edit-access"(id) {
    const { name, userIds } = account(id);
    // A user who has lost the seat stays in the list until unticked.
    const users = new Map([...known.names, ...userIds.filter((user) => !known.names.has(user)).map((user) => [user, user])]);
    one("#access-title").textContent = `Access to ${name}`;
    boxes(one("#access-users"), "userIds", [...users], userIds);
    const save = (data) => put("/accounts/users", { accountId: id, userIds: data.getAll("userIds") });
    const done = await converse(one("#access-dialog"), save);
    if (done) await changed(`The access to ${name} was changed. Tickets without an assignee now: ${done.unassignedTickets}.`);
  },
  async "set-bridge"(id) {
    const { name, bridge } = account(id);
    const dialog = one("#bridge-dialog");
    one("#bridge-title").textContent = `Bridge of ${name}`;
    one("form", dialog).elements.url.value = bridge ?? "";
    const done = await converse(dialog, (data) => put("/accounts/bridge", { accountId: id, url: data.get("url") }));
    if (!done) return;
    if (done.secret) await tellSecret("Secret of the bridge", done.secret, "With it the bridge verifies messages, and signs those that it brings in.");
    await changed(`The bridge of ${name} was saved.`);
  },
  "rotate-bridge"(id) {
    const { name } = account(id);
    const text = "Messages are signed with a new secret. For 24 hours they are also signed with the current one.";
    const note = "For 24 hours messages are also signed with the former secret.";
    const perform = () => post("/accounts/bridge/rotate", { accountId: id });
    return surely(`Rotate the secret of ${name}'s bridge?`, text, "Rotate", perform, "The secret was rotated.", { note });
  },
  "remove-bridge"(id) {
    const { name } = account(id);
    const text = "Messages of the account are no longer handed over. Those that still wait fail.";
    const perform = () => remove("/accounts/bridge", { accountId: id });
    return surely(`Remove the bridge of ${name}?`, text, "Remove", perform, `The bridge of ${name} was removed.`, { grave: true });
  },
};

const view = add({
  name: "accounts", title: "Accounts", id: "accountId", label: "name", fill: fillAccount, fetch: load, acts, empty: "There are no channel accounts yet.",
  body: `<p class="hint">Who may work on each channel account, and the bridge that attaches its channel.</p>
    <state><ul class="list cards" data-row="account-row"></ul>`,
  outside: ROW + DIALOGS,
});
