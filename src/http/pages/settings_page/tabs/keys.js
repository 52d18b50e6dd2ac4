// The tab of API keys: a list of the keys, with buttons to create, edit, rotate, suspend and delete them.

import { add, changed, confirmAndPerform, table } from "../tabs.js";
import { openDialog, showSecret } from "../dialogs.js";
import { badge, boxes, clock, one, options, stamp } from "../dom_helpers.js";
import { Refused, get, known, nameOf, patch, post, remove } from "../settings_api.js";
import { t } from "../localization.js";

const SOON_MILLIS = 14 * 24 * 3600 * 1000;
// How long a former secret stays valid after a rotation.
const OVERLAP_MILLIS = 2 * 3600 * 1000;

const ROW = `<template id="key-row"><tr role="row">
  <td role="cell" data-label="${t("key")}"><strong data-slot="name"></strong> <code data-slot="masked"></code> <small data-slot="actsAs"></small></td>
  <td role="cell" data-label="${t("scopes")}" data-slot="scopes"></td>
  <td role="cell" data-label="${t("status")}"><span class="badge" data-slot="status"></span></td>
  <td role="cell" data-label="${t("created")}"><time data-slot="createdAt"></time></td>
  <td role="cell" data-label="${t("expires")}"><time data-slot="expiresAt"></time></td>
  <td role="cell" data-label="${t("key-last-used")}"><time data-slot="lastUsedAt" data-time="short"></time></td>
  <td role="cell" class="actions">
    <button type="button" class="quiet" data-act="edit-key">${t("edit")}</button>
    <button type="button" class="quiet" data-act="rotate-key">${t("rotate")}</button>
    <button type="button" class="quiet" data-act="suspend-key">${t("key-suspend")}</button>
    <button type="button" class="quiet" data-act="activate-key">${t("key-activate")}</button>
    <button type="button" class="quiet danger" data-act="delete-key">${t("delete")}</button>
  </td>
</tr></template>`;

const DIALOG = `<dialog id="key-dialog" aria-labelledby="key-dialog-title"><form method="dialog">
  <h2 id="key-dialog-title"></h2>
  <label>${t("name")} <input name="name" required maxlength="100" autocomplete="off" autofocus></label>
  <fieldset><legend>${t("scopes")}</legend><div class="boxes" id="scopes"></div></fieldset>
  <p class="hint">${t("key-scopes-hint")}</p>
  <div id="acts-as" class="group"><label>${t("key-acts-as")} <select name="userId"></select></label>
    <p class="hint">${t("key-acts-as-hint")}</p></div>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">${t("cancel")}</button> <button class="main">${t("save")}</button></p>
</form></dialog>`;

const key = (id) => view.records.find((key) => key.id === id);

function scopeText(granted) {
  const nouns = (access) => granted.map((scope) => scope.split(":")).filter((scope) => scope[1] === access).map(([noun]) => noun);
  const write = nouns("write");
  const read = nouns("read").filter((noun) => !write.includes(noun));
  if (granted.length === known.scopes.length) return t("key-everything");
  return [read.length && t("key-reads", { nouns: read.join(", ") }), write.length && t("key-writes", { nouns: write.join(", ") })].filter(Boolean).join("; ");
}

function fillKey(key, slots, text, button) {
  text({ name: key.name, masked: key.masked, scopes: scopeText(key.scopes), actsAs: key.userId && t("key-as", { name: nameOf(key.userId) }) });
  badge(slots.status, t(`key-status-${key.status}`), key.status === "active" ? "good" : "bad");
  stamp(slots.createdAt, key.createdAt);
  stamp(slots.expiresAt, key.expiresAt);
  slots.expiresAt.classList.toggle("warn", key.status !== "expired" && Date.parse(key.expiresAt) - Date.now() < SOON_MILLIS);
  stamp(slots.lastUsedAt, key.lastUsedAt, t("never"));
  button("rotate-key").hidden = key.status !== "active";
  button("suspend-key").hidden = key.status !== "active";
  button("activate-key").hidden = key.status !== "inactive";
}

function keyForm(title, former, perform) {
  const dialog = one("#key-dialog");
  const form = one("form", dialog);
  boxes(one("#scopes"), "scopes", known.scopes.map((scope) => [scope, scope]), former?.scopes ?? []);
  options(form.elements.userId, [["", known.session.role === "owner" ? t("key-acts-as-owner", { name: known.owner }) : t("key-acts-as-you")], ...known.names]);
  one("#key-dialog-title").textContent = title;
  form.elements.name.value = former?.name ?? "";
  one("#acts-as").hidden = Boolean(former);
  return openDialog(dialog, (data) => {
    const granted = data.getAll("scopes");
    if (!granted.length) throw new Refused(0, t("key-no-scope"));
    return perform({ name: data.get("name"), scopes: granted }, data.get("userId"));
  });
}

const acts = {
  async "create-key"() {
    const made = await keyForm(t("key-create"), undefined, (key, userId) => post("/keys", userId ? { ...key, userId } : key));
    if (!made) return;
    await showSecret(t("key-secret", { name: made.key.name }), made.secret, t("key-secret-note"));
    await changed(t("key-created", { name: made.key.name }));
  },
  async "edit-key"(id) {
    const edited = await keyForm(t("key-edit"), key(id), (change) => patch("/keys", { keyId: id, ...change }));
    if (edited) await changed(t("key-changed", { name: edited.name }));
  },
  "rotate-key"(id) {
    const { name } = key(id);
    const perform = (ended) => post("/keys/rotate", { keyId: id, ...(ended && { endFormerSecrets: true }) });
    const until = () => clock(Date.now() + OVERLAP_MILLIS, { timeStyle: "short" });
    const note = (ended) => (ended ? t("former-secret-ended") : t("key-rotate-note", { time: until() }));
    return confirmAndPerform(t("key-rotate", { name }), t("key-rotate-text"), t("rotate"), perform, t("key-rotated", { name }), { secretOf: t("key-secret", { name }), note, box: t("end-former-secret") });
  },
  "suspend-key"(id) {
    const { name } = key(id);
    const perform = () => post("/keys/deactivate", { keyId: id });
    return confirmAndPerform(t("key-suspend-title", { name }), t("key-suspend-text"), t("key-suspend"), perform, t("key-suspended", { name }));
  },
  async "activate-key"(id) {
    const { name } = await post("/keys/activate", { keyId: id });
    await changed(t("key-activated", { name }));
  },
  "delete-key"(id) {
    const { name } = key(id);
    const perform = () => remove("/keys", { keyId: id });
    return confirmAndPerform(t("key-delete", { name }), t("key-delete-text"), t("delete"), perform, t("key-deleted", { name }), { grave: true });
  },
};

const view = add({
  name: "keys", id: "id", label: "name", fill: fillKey, fetch: () => get("/keys"), acts,
  head: `<button type="button" class="main" data-act="create-key">${t("key-create")}</button>`,
  body: `<state>${table("keys", "key-row", ["key", "scopes", "status", "created", "expires", "key-last-used", "actions"])}`,
  outside: ROW + DIALOG,
});

// A write scope includes the read scope of the same resource. So selecting `tickets:write` also selects `tickets:read`, and clearing
// `tickets:read` also clears `tickets:write`.
one("#scopes").addEventListener("change", ({ target }) => {
  const [noun, access] = target.value.split(":");
  const other = one(`[value="${noun}:${access === "write" ? "read" : "write"}"]`, one("#scopes"));
  if (other && target.checked === (access === "write")) other.checked = target.checked;
});
