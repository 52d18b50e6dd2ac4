// The tab of API keys.

import { add, changed, surely, table, ACTIONS } from "../sections.js";
import { converse, tellSecret } from "../dialogs.js";
import { badge, boxes, one, options, stamp } from "../elements.js";
import { Refused, get, known, nameOf, patch, post, remove } from "../plane.js";

const SOON_MILLIS = 14 * 24 * 3600 * 1000;

const ROW = `<template id="key-row"><tr role="row">
  <td role="cell" data-label="Key"><strong data-slot="name"></strong> <code data-slot="masked"></code> <small data-slot="actsAs"></small></td>
  <td role="cell" data-label="Scopes" data-slot="scopes"></td>
  <td role="cell" data-label="Status"><span class="badge" data-slot="status"></span></td>
  <td role="cell" data-label="Created"><time data-slot="createdAt"></time></td>
  <td role="cell" data-label="Expires"><time data-slot="expiresAt"></time></td>
  <td role="cell" data-label="Last used"><time data-slot="lastUsedAt" data-time="short"></time></td>
  <td role="cell" class="actions">
    <button type="button" class="quiet" data-act="edit-key">Edit</button>
    <button type="button" class="quiet" data-act="rotate-key">Rotate</button>
    <button type="button" class="quiet" data-act="suspend-key">Suspend</button>
    <button type="button" class="quiet" data-act="activate-key">Activate</button>
    <button type="button" class="quiet danger" data-act="delete-key">Delete</button>
  </td>
</tr></template>`;

const DIALOG = `<dialog id="key-dialog" aria-labelledby="key-dialog-title"><form method="dialog">
  <h2 id="key-dialog-title"></h2>
  <label>Name <input name="name" required maxlength="100" autocomplete="off" autofocus></label>
  <fieldset><legend>Scopes</legend><div class="boxes" id="scopes"></div></fieldset>
  <p class="hint">A write scope contains its read scope.</p>
  <label id="acts-as">Acts as <select name="userId"></select></label>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">Cancel</button> <button class="main">Save</button></p>
</form></dialog>`;

const key = (id) => view.records.find((key) => key.id === id);

function scopeText(granted) {
  const nouns = (access) => granted.map((scope) => scope.split(":")).filter((scope) => scope[1] === access).map(([noun]) => noun);
  const write = nouns("write");
  const read = nouns("read").filter((noun) => !write.includes(noun));
  if (granted.length === known.scopes.length) return "read and write everything";
  return [read.length && `read ${read.join(", ")}`, write.length && `read and write ${write.join(", ")}`].filter(Boolean).join("; ");
}

function fillKey(key, slots, text, button) {
  text({ name: key.name, masked: key.masked, scopes: scopeText(key.scopes), actsAs: key.userId && `as ${nameOf(key.userId)}` });
  badge(slots.status, key.status === "inactive" ? "suspended" : key.status, key.status === "active" ? "good" : "bad");
  stamp(slots.createdAt, key.createdAt);
  stamp(slots.expiresAt, key.expiresAt);
  slots.expiresAt.classList.toggle("warn", key.status !== "expired" && Date.parse(key.expiresAt) - Date.now() < SOON_MILLIS);
  stamp(slots.lastUsedAt, key.lastUsedAt, "never");
  button("rotate-key").hidden = key.status !== "active";
  button("suspend-key").hidden = key.status !== "active";
  button("activate-key").hidden = key.status !== "inactive";
}

function keyForm(title, former, perform) {
  const dialog = one("#key-dialog");
  const form = one("form", dialog);
  boxes(one("#scopes"), "scopes", known.scopes.map((scope) => [scope, scope]), former?.scopes ?? []);
  options(form.elements.userId, [["", known.session.role === "owner" ? "the store's oldest owner" : "you"], ...known.names]);
  one("#key-dialog-title").textContent = title;
  form.elements.name.value = former?.name ?? "";
  one("#acts-as").hidden = Boolean(former);
  return converse(dialog, (data) => {
    const granted = data.getAll("scopes");
    if (!granted.length) throw new Refused(0, "Choose at least one scope.");
    return perform({ name: data.get("name"), scopes: granted }, data.get("userId"));
  });
}

const acts = {
  async "create-key"() {
    const made = await keyForm("Create key", undefined, (key, userId) => post("/keys", userId ? { ...key, userId } : key));
    if (!made) return;
    await tellSecret(`Secret of ${made.key.name}`, made.secret, "Anyone who has the secret can do what the key may do.");
    await changed(`The key ${made.key.name} was created.`);
  },
  async "edit-key"(id) {
    const edited = await keyForm("Edit key", key(id), (change) => patch("/keys", { keyId: id, ...change }));
    if (edited) await changed(`The key ${edited.name} was changed.`);
  },
  "rotate-key"(id) {
    const { name } = key(id);
    const text = "The key gets a new secret and expires six months from now. The current secret stays valid for two hours.";
    const note = "The former secret stays valid for two hours.";
    return surely(`Rotate ${name}?`, text, "Rotate", () => post("/keys/rotate", { keyId: id }), `The key ${name} was rotated.`, { note });
  },
  "suspend-key"(id) {
    const { name } = key(id);
    const text = "Every request with the key is refused until the key is activated again. Its expiry does not move.";
    return surely(`Suspend ${name}?`, text, "Suspend", () => post("/keys/deactivate", { keyId: id }), `The key ${name} is suspended.`);
  },
  async "activate-key"(id) {
    const { name } = await post("/keys/activate", { keyId: id });
    await changed(`The key ${name} is active.`);
  },
  "delete-key"(id) {
    const { name } = key(id);
    const text = "All secrets of the key stop working at once and permanently.";
    return surely(`Delete ${name}?`, text, "Delete", () => remove("/keys", { keyId: id }), `The key ${name} was deleted.`, { grave: true });
  },
};

const view = add({
  name: "keys", title: "API keys", id: "id", label: "name", fill: fillKey, fetch: () => get("/keys"), acts, empty: "There are no API keys yet.",
  head: '<button type="button" class="main" data-act="create-key">Create key</button>',
  body: `<p class="hint">A request carries a key in the header <code>x-api-key</code>. A key expires six months after it was created or last rotated.</p>
    <state>${table("keys", "key-row", ["Key", "Scopes", "Status", "Created", "Expires", "Last used", ACTIONS])}`,
  outside: ROW + DIALOG,
});

// A write scope contains its read scope.
one("#scopes").addEventListener("change", ({ target }) => {
  const [noun, access] = target.value.split(":");
  const other = one(`[value="${noun}:${access === "write" ? "read" : "write"}"]`, one("#scopes"));
  if (other && target.checked === (access === "write")) other.checked = target.checked;
});
