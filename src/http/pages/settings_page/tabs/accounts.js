// The tab of channel accounts. It shows the users who may work on each account, and the account's bridge: the HTTP endpoint that passes the
// account's outgoing messages on to the channel.

import { add, changed, confirmAndPerform } from "../tabs.js";
import { openDialog, showSecret } from "../dialogs.js";
import { boxes, one } from "../dom_helpers.js";
import { get, known, nameOf, post, put, remove } from "../settings_api.js";
import { t } from "../localization.js";

const ROW = `<template id="account-row"><li>
  <p class="url"><strong data-slot="name"></strong> <span class="badge" data-tone="none" data-slot="channel"></span></p>
  <dl>
    <dt>${t("account-open-to")}</dt><dd data-slot="users"></dd>
    <dt>${t("bridge")}</dt><dd><code data-slot="bridge"></code></dd>
  </dl>
  <p class="actions">
    <button type="button" class="quiet" data-act="edit-access">${t("account-access")}</button>
    <button type="button" class="quiet" data-act="set-bridge">${t("bridge-set")}</button>
    <button type="button" class="quiet" data-act="rotate-bridge">${t("bridge-rotate")}</button>
    <button type="button" class="quiet danger" data-act="remove-bridge">${t("bridge-remove")}</button>
  </p>
</li></template>`;

const DIALOGS = `<dialog id="access-dialog" aria-labelledby="access-title"><form method="dialog">
  <h2 id="access-title"></h2>
  <fieldset><legend>${t("account-users")}</legend><div class="boxes" id="access-users"></div></fieldset>
  <p class="hint">${t("account-users-hint")}</p>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">${t("cancel")}</button> <button class="main">${t("save")}</button></p>
</form></dialog>
<dialog id="bridge-dialog" aria-labelledby="bridge-title"><form method="dialog">
  <h2 id="bridge-title"></h2>
  <label>${t("address")} <input name="url" type="url" required maxlength="2048" placeholder="https://example.com/bridge" autocomplete="off" autofocus></label>
  <p class="hint">${t("bridge-hint")}</p>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">${t("cancel")}</button> <button class="main">${t("save")}</button></p>
</form></dialog>`;

const account = (id) => view.records.find((account) => account.accountId === id);

// Fetches the accounts, each with the address of its bridge if it has one.
async function load() {
  const [accounts, bridges] = await Promise.all([get("/accounts"), get("/accounts/bridge")]);
  const bridgeOf = new Map(bridges.map((bridge) => [bridge.accountId, bridge.url]));
  known.accounts = accounts;
  return accounts.map((account) => ({ ...account, bridge: bridgeOf.get(account.accountId) }));
}

function fillAccount(account, slots, text, button) {
  const { name, channel, userIds, bridge } = account;
  text({ name, channel, users: userIds.length ? userIds.map(nameOf).join(", ") : t("account-every-user"), bridge: bridge ?? t("none") });
  button("set-bridge").textContent = t(bridge ? "bridge-change" : "bridge-set");
  // The channel `widget` (web chat) is served by this server itself and needs no bridge.
  button("set-bridge").hidden = channel === "widget";
  button("rotate-bridge").hidden = button("remove-bridge").hidden = !bridge;
}

const acts = {
  async "edit-access"(id) {
    const { name, userIds } = account(id);
    // The account may list a user who was removed from the store. Such a user gets a check box too, so that saving does not change the list
    // unnoticed.
    const users = new Map([...known.names, ...userIds.filter((user) => !known.names.has(user)).map((user) => [user, user])]);
    one("#access-title").textContent = t("account-access-title", { name });
    boxes(one("#access-users"), "userIds", [...users], userIds);
    const save = (data) => put("/accounts/users", { accountId: id, userIds: data.getAll("userIds") });
    const done = await openDialog(one("#access-dialog"), save);
    if (done) await changed(t("account-access-changed", { name, count: done.unassignedTickets }));
  },
  async "set-bridge"(id) {
    const { name, bridge } = account(id);
    const dialog = one("#bridge-dialog");
    one("#bridge-title").textContent = t("bridge-title", { name });
    one("form", dialog).elements.url.value = bridge ?? "";
    const done = await openDialog(dialog, (data) => put("/accounts/bridge", { accountId: id, url: data.get("url") }));
    if (!done) return;
    if (done.secret) await showSecret(t("bridge-secret"), done.secret, t("bridge-secret-note"));
    await changed(t("bridge-saved", { name }));
  },
  "rotate-bridge"(id) {
    const { name } = account(id);
    const secretOf = t("bridge-secret-of", { name });
    const note = (ended) => t(ended ? "former-secret-ended" : "bridge-rotate-note");
    const perform = (ended) => post("/accounts/bridge/rotate", { accountId: id, ...(ended && { endFormerSecrets: true }) });
    return confirmAndPerform(t("bridge-rotate-title", { name }), t("bridge-rotate-text"), t("rotate"), perform, t("bridge-rotated"), { secretOf, note, box: t("end-former-secret") });
  },
  "remove-bridge"(id) {
    const { name } = account(id);
    const perform = () => remove("/accounts/bridge", { accountId: id });
    return confirmAndPerform(t("bridge-remove-title", { name }), t("bridge-remove-text"), t("remove"), perform, t("bridge-removed", { name }), { grave: true });
  },
};

const view = add({
  name: "accounts", id: "accountId", label: "name", fill: fillAccount, fetch: load, acts,
  body: `<state><ul class="list cards" data-row="account-row"></ul>`,
  outside: ROW + DIALOGS,
});
