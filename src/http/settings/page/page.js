// The script of the settings page: it shows data of the settings plane (/settings/v1), and makes every change through the plane. Data from
// the plane is put into text nodes only, so that a name cannot become markup.

const PLANE = "/settings/v1";
const REFRESH_MILLIS = 3000;
const HURRIED_MILLIS = 500;
const MESSAGE_MILLIS = 8000;
const PAGE_ROWS = 50;
const SOON_MILLIS = 14 * 24 * 3600 * 1000;

const one = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// ---- Requests to the plane

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function fetched(address, request) {
  let response;
  try {
    response = await fetch(address, { cache: "no-store", ...request });
  } catch {
    throw new Refused(0, "The server cannot be reached.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw new Refused(response.status, answer.error?.message ?? `The server answered ${response.status}.`);
}

async function ask(method, path, { query = {}, body } = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const json = body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const asking = session;
  try {
    return (await fetched(`${PLANE}${path}${given.length ? "?" : ""}${new URLSearchParams(given)}`, { method, ...json })).data;
  } catch (refused) {
    // A user whose session has ended, or who has lost the role, is shown the gate. A refusal that names a field is about the request, not
    // about the user.
    const unwelcome = [401, 403].includes(refused.status) && !refused.message.startsWith("`");
    if (asking && asking === session && unwelcome) leave(refused);
    throw refused;
  }
}

const get = (path, query) => ask("GET", path, { query });
const post = (path, body) => ask("POST", path, { body });
const patch = (path, body) => ask("PATCH", path, { body });
const remove = (path, query) => ask("DELETE", path, { query });

// ---- The session

let session;
// The secret of a link that has not opened a session yet.
let link;
let names = new Map();
let accounts = [];
// Every scope and every kind of event, as the plane's OpenAPI document lists them.
let scopes = [];
let kinds = [];

async function enter() {
  if (location.hash.startsWith("#link=")) {
    link = location.hash.slice(6);
    // The secret must not stay in the address or the history.
    history.replaceState(null, "", location.pathname);
  }
  session = logOf = undefined;
  // The records shown so far may belong to another store.
  for (const view of Object.values(views)) view.records = [];
  try {
    const opened = link ? await post("/session", { link }) : await get("/session");
    link = undefined;
    const [seats, channels, document] = await Promise.all([get("/users"), get("/accounts"), fetched("/settings/openapi.json")]);
    ({ schemas: { Scope: { enum: scopes }, EventKind: { enum: kinds } } } = document.components);
    accounts = channels;
    session = opened;
    names = new Map(seats.filter((seat) => seat.userId).map((seat) => [seat.userId, seat.name ?? seat.email ?? seat.userId]));
  } catch (refused) {
    return leave(refused);
  }
  one("#store").textContent = session.storeId;
  one("#who").textContent = `${nameOf(session.userId)}, ${session.role}, until ${clock(session.expiresAt, { timeStyle: "short" })}`;
  one("#gate").hidden = true;
  one("#page").hidden = false;
  await turn();
}

// Shows the gate, which is the page without a session, in place of everything else.
function leave({ status, message }) {
  session = undefined;
  clearTimeout(refreshing);
  for (const dialog of all("dialog[open]")) dialog.close();
  one("#secret").textContent = "";
  for (const list of all(".list")) list.replaceChildren();
  one("#page").hidden = true;
  say("");
  one("#gate").hidden = false;
  one("#gate-message").textContent = message;
  one("#gate-message").classList.toggle("failure", status !== 200);
  one("#gate-help").hidden = ![200, 401].includes(status);
  const settled = [200, 401, 403].includes(status);
  one("#gate-again").hidden = settled;
  if (settled) link = undefined;
  one("#gate h1").focus();
}

const nameOf = (user) => names.get(user) ?? user;

// ---- Text

const clock = (instant, style) => new Intl.DateTimeFormat(undefined, style).format(new Date(instant));

function stamp(element, instant, otherwise = "–") {
  element.textContent = instant ? clock(instant, { dateStyle: "medium", timeStyle: element.dataset.time }) : otherwise;
  element.title = instant ?? "";
  if (instant) element.dateTime = instant;
  else element.removeAttribute("datetime");
}

function badge(element, text, tone) {
  element.textContent = text;
  element.dataset.tone = tone;
}

let unsaying;
function say(text) {
  one("#message").textContent = text;
  clearTimeout(unsaying);
  unsaying = setTimeout(() => (one("#message").textContent = ""), MESSAGE_MILLIS);
}

// Shows records as the rows of a list. A refresh reuses the row of a record, so that the row does not lose the focus.
function show(list, records, { id, label, fill }) {
  const ids = new Set(records.map((record) => String(record[id])));
  for (const row of [...list.children]) if (!ids.has(row.dataset.id)) row.remove();
  const kept = new Map([...list.children].map((row) => [row.dataset.id, row]));
  const template = document.getElementById(list.dataset.row).content.firstElementChild;
  let next = list.firstElementChild;
  for (const record of records) {
    let row = kept.get(String(record[id]));
    if (row && row === next) {
      next = next.nextElementSibling;
    } else {
      row ??= template.cloneNode(true);
      row.dataset.id = record[id];
      list.insertBefore(row, next);
    }
    const slots = Object.fromEntries(all("[data-slot]", row).map((slot) => [slot.dataset.slot, slot]));
    const text = (values) => Object.entries(values).forEach(([name, value]) => (slots[name].textContent = value ?? ""));
    fill(record, slots, text, (act) => one(`[data-act=${act}]`, row));
    // The buttons have the same text in every row. The label that a screen reader speaks also names the row's record.
    for (const button of all("button", row)) button.ariaLabel = `${button.textContent} ${record[label]}`;
  }
}

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function boxes(container, name, values, ticked) {
  container.replaceChildren(...values.map((value) => {
    const label = document.createElement("label");
    const box = document.createElement("input");
    Object.assign(box, { type: "checkbox", name, value, checked: ticked.includes(value) });
    label.className = "box";
    label.append(box, ` ${value}`);
    return label;
  }));
}

// ---- Dialogs

// Opens a dialog. Resolves to the result of `perform` once that succeeds with the form's data, or to undefined if the user closes the
// dialog. If `perform` fails, the reason is shown and the dialog stays open. The browser returns the focus to the element that had it
// before.
function converse(dialog, perform) {
  const form = one("form", dialog);
  const failure = one(".failure", dialog);
  const refuse = (text) => failure && (failure.textContent = text);
  let busy = false;
  refuse("");
  return new Promise((done) => {
    // Closing the dialog does not cancel a request that is under way: a secret in its answer must still be shown.
    dialog.onclose = () => busy || done(undefined);
    form.onsubmit = async (event) => {
      event.preventDefault();
      if (busy) return;
      busy = true;
      refuse("");
      try {
        const result = await perform(new FormData(form));
        if (result !== undefined) {
          done(result);
          dialog.close();
        }
      } catch (refused) {
        refuse(refused.message);
        if (!dialog.open && session) say(refused.message);
        // A reason that begins with `body.url` names the input to correct.
        form.elements[/^`body\.(\w+)/.exec(refused.message)?.[1]]?.focus?.();
      } finally {
        busy = false;
        if (!dialog.open) done(undefined);
      }
    };
    dialog.showModal();
  });
}

// Asks for confirmation before an action. Afterwards shows the new secret, if there is one, and reports what was done.
async function sure(title, text, yes, perform, done, { note, grave = false } = {}) {
  one("#confirm-title").textContent = title;
  one("#confirm-text").textContent = text;
  one("#confirm-yes").textContent = yes;
  one("#confirm-yes").classList.toggle("danger", grave);
  const result = await converse(one("#confirm-dialog"), perform);
  if (result?.secret) await tellSecret("New secret", result.secret, note);
  if (result) await changed(done);
}

async function tellSecret(title, secret, note) {
  one("#secret-title").textContent = title;
  one("#secret").textContent = secret;
  one("#secret-note").textContent = note;
  one("#copied").textContent = "";
  await converse(one("#secret-dialog"), () => true);
  one("#secret").textContent = "";
}

// The secret is shown only once: a stray Escape must not close its dialog.
one("#secret-dialog").addEventListener("keydown", (event) => event.key === "Escape" && event.preventDefault());
one("#secret-dialog").addEventListener("cancel", (event) => event.preventDefault());

async function copy() {
  try {
    await navigator.clipboard.writeText(one("#secret").textContent);
    one("#copied").textContent = "Copied.";
  } catch {
    // Without TLS, browsers offer no clipboard.
    getSelection().selectAllChildren(one("#secret"));
    one("#copied").textContent = "Selected; copy it with the keyboard.";
  }
}

// ---- API keys

const key = (id) => views.keys.records.find((key) => key.id === id);

function scopeText(granted) {
  const nouns = (access) => granted.map((scope) => scope.split(":")).filter((scope) => scope[1] === access).map(([noun]) => noun);
  const write = nouns("write");
  const read = nouns("read").filter((noun) => !write.includes(noun));
  if (granted.length === scopes.length) return "read and write everything";
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
  boxes(one("#scopes"), "scopes", scopes, former?.scopes ?? []);
  options(form.elements.userId, [["", session.role === "owner" ? "the store's oldest owner" : "you"], ...names]);
  one("#key-dialog-title").textContent = title;
  form.elements.name.value = former?.name ?? "";
  one("#acts-as").hidden = Boolean(former);
  return converse(dialog, (data) => {
    const granted = data.getAll("scopes");
    if (!granted.length) throw new Refused(0, "Choose at least one scope.");
    return perform({ name: data.get("name"), scopes: granted }, data.get("userId"));
  });
}

// A write scope contains its read scope.
one("#scopes").addEventListener("change", ({ target }) => {
  const [noun, access] = target.value.split(":");
  const other = one(`[value="${noun}:${access === "write" ? "read" : "write"}"]`, one("#scopes"));
  if (other && target.checked === (access === "write")) other.checked = target.checked;
});

const keyActs = {
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
    return sure(`Rotate ${name}?`, text, "Rotate", () => post("/keys/rotate", { keyId: id }), `The key ${name} was rotated.`, { note });
  },
  "suspend-key"(id) {
    const { name } = key(id);
    const text = "Every request with the key is refused until the key is activated again. Its expiry does not move.";
    return sure(`Suspend ${name}?`, text, "Suspend", () => post("/keys/deactivate", { keyId: id }), `The key ${name} is suspended.`);
  },
  async "activate-key"(id) {
    const { name } = await post("/keys/activate", { keyId: id });
    await changed(`The key ${name} is active.`);
  },
  "delete-key"(id) {
    const { name } = key(id);
    const text = "All secrets of the key stop working at once and permanently.";
    return sure(`Delete ${name}?`, text, "Delete", () => remove("/keys", { keyId: id }), `The key ${name} was deleted.`, { grave: true });
  },
};

// ---- Webhooks

const webhook = (id) => views.webhooks.records.find((webhook) => webhook.id === id);

function accountText(id) {
  const account = accounts.find((account) => account.accountId === id);
  return account ? `${account.name} (${account.channel})` : id;
}

function fillWebhook(webhook, slots, text, button) {
  const { enabled, failingSince } = webhook;
  text({
    url: webhook.url,
    events: webhook.events.length === kinds.length ? "every kind" : webhook.events.join(", "),
    account: webhook.accountId ? accountText(webhook.accountId) : "every account",
    trouble: enabled ? failingSince && `Every attempt has failed since ${clock(failingSince, { dateStyle: "medium", timeStyle: "short" })}.`
      : `Disabled: ${webhook.disabledReason ?? "no reason is recorded"}.`,
  });
  slots.trouble.title = failingSince ?? "";
  slots.trouble.hidden = !slots.trouble.textContent;
  if (enabled) badge(slots.state, failingSince ? "failing" : "enabled", failingSince ? "warn" : "good");
  else badge(slots.state, "disabled", "bad");
  stamp(slots.createdAt, webhook.createdAt);
  slots.log.href = `#deliveries/${webhook.id}`;
  button("test-webhook").hidden = !enabled;
  button("disable-webhook").hidden = !enabled;
  button("enable-webhook").hidden = enabled;
}

function webhookForm(title, former, perform) {
  const dialog = one("#webhook-dialog");
  const { url, accountId } = one("form", dialog).elements;
  boxes(one("#kinds"), "events", kinds, former?.events ?? kinds);
  // The webhook's own account can always be chosen, even if it was added after the list was fetched. Otherwise saving would select every
  // account.
  const known = new Set([...accounts.map((account) => account.accountId), ...(former?.accountId ? [former.accountId] : [])]);
  options(accountId, [["", "every account"], ...[...known].map((id) => [id, accountText(id)])], former?.accountId);
  one("#webhook-dialog-title").textContent = title;
  url.value = former?.url ?? "";
  return converse(dialog, (data) => {
    const events = data.getAll("events");
    if (!events.length) throw new Refused(0, "Choose at least one kind of event.");
    // If all kinds are ticked, kinds that are added later are included: a new webhook leaves `events` out, a change sends null.
    const every = former ? null : undefined;
    return perform({ url: data.get("url"), events: events.length === kinds.length ? every : events, accountId: data.get("accountId") || null });
  });
}

const webhookActs = {
  async "create-webhook"() {
    const made = await webhookForm("Add webhook", undefined, (hook) => post("/webhooks", hook));
    if (!made) return;
    await tellSecret("Signing secret", made.secret, "With it the endpoint verifies that a delivery comes from this server.");
    await changed("The webhook was added.");
  },
  async "edit-webhook"(id) {
    const perform = (hook) => patch("/webhooks", { webhookId: id, ...hook });
    if (await webhookForm("Edit webhook", webhook(id), perform)) await changed("The webhook was changed.");
  },
  "rotate-webhook"(id) {
    const text = `Deliveries to ${webhook(id).url} are signed with a new secret. For 24 hours they are also signed with the current one.`;
    const note = "For 24 hours deliveries are also signed with the former secret.";
    return sure("Rotate the signing secret?", text, "Rotate", () => post("/webhooks/rotate", { webhookId: id }), "The secret was rotated.", { note });
  },
  async "test-webhook"(id) {
    await post("/webhooks/test", { webhookId: id });
    hurried = 6;
    location.hash = `#deliveries/${id}`;
    say("A test event is on its way.");
  },
  "disable-webhook"(id) {
    const text = `No more events are sent to ${webhook(id).url}, and the events that wait for it are dropped.`;
    return sure("Disable the webhook?", text, "Disable", () => post("/webhooks/disable", { webhookId: id }), "The webhook is disabled.");
  },
  async "enable-webhook"(id) {
    await post("/webhooks/enable", { webhookId: id });
    await changed("The webhook is enabled. Events that it missed can be replayed from its delivery log.");
  },
  "delete-webhook"(id) {
    const text = `No more events are sent to ${webhook(id).url}, and its delivery log is deleted permanently.`;
    const perform = () => remove("/webhooks", { webhookId: id });
    return sure("Delete the webhook?", text, "Delete", perform, "The webhook was deleted.", { grave: true });
  },
};

// ---- Delivery log

const TONES = { delivered: "good", retrying: "warn", late: "warn", given_up: "bad", disabled: "bad" };

let logOf;
let refreshing;
// How many of the next refreshes come after the shorter pause, because the user has just caused a delivery or a change.
let hurried = 0;

function fillAttempt(attempt, slots, text) {
  text({
    type: attempt.type,
    eventId: attempt.eventId,
    attempt: attempt.attempt,
    answer: attempt.status ?? attempt.reason ?? "no answer",
    took: `${attempt.millis} ms`,
  });
  badge(slots.outcome, attempt.outcome.replace("_", " "), TONES[attempt.outcome] ?? "warn");
  stamp(slots.startedAt, attempt.startedAt);
  stamp(slots.nextAttemptAt, attempt.nextAttemptAt);
}

async function loadLog() {
  const webhooks = await get("/webhooks");
  if (!webhooks.some((webhook) => webhook.id === logOf)) logOf = webhooks[0]?.id;
  options(one("#log-webhook"), webhooks.map((webhook) => [webhook.id, webhook.url]), logOf);
  one(".filter").hidden = one("[data-act=replay-range]").hidden = !logOf;
  one("#deliveries").dataset.empty = logOf ? "Nothing was sent yet." : "There are no webhooks yet.";
  return logOf ? get("/webhooks/attempts", { webhookId: logOf, limit: PAGE_ROWS }) : [];
}

function keepRefreshing() {
  clearTimeout(refreshing);
  if (!session || here() !== "deliveries" || document.hidden) return;
  refreshing = setTimeout(() => load("deliveries", true), hurried > 0 ? HURRIED_MILLIS : REFRESH_MILLIS);
  hurried -= 1;
}

const replayText = (count) => (count === 1 ? "1 event" : `${count} events`);

const logActs = {
  async "replay-one"(position) {
    const attempt = views.deliveries.records.find((attempt) => String(attempt.position) === position);
    const { count } = await post("/webhooks/replay", { webhookId: logOf, eventId: attempt.eventId });
    await changed(count ? "The event is on its way again." : "The event is being sent already, or the webhook no longer subscribes to it.");
  },
  async "replay-range"() {
    const dialog = one("#replay-dialog");
    const form = one("form", dialog);
    const go = one("#replay-go");
    const uncounted = () => {
      go.textContent = "Count";
      one("#replay-count").textContent = "";
      counted = undefined;
    };
    let counted;
    form.reset();
    uncounted();
    form.oninput = uncounted;
    const instant = (local) => (local ? new Date(local).toISOString() : undefined);
    const sent = await converse(dialog, async (data) => {
      if (counted) return post("/webhooks/replay", counted);
      const order = { webhookId: logOf, since: instant(data.get("since")), until: instant(data.get("until")), missing: data.has("missing") };
      const { count } = await post("/webhooks/replay", { ...order, dryRun: true });
      one("#replay-count").textContent = count ? `${replayText(count)} would be sent.` : "There is nothing to send.";
      if (count) {
        counted = order;
        go.textContent = `Send ${replayText(count)}`;
      }
    });
    if (sent) await changed(`${replayText(sent.count)} queued.`);
  },
};

one("#log-webhook").addEventListener("change", ({ target }) => (location.hash = `#deliveries/${target.value}`));
document.addEventListener("visibilitychange", () => session && here() === "deliveries" && !document.hidden && load("deliveries", true));

// ---- Changes

function fillChange(entry, slots, text) {
  text({
    who: entry.userId ? nameOf(entry.userId) : "command line",
    via: entry.userId && `by ${entry.via.replace("_", " ")}`,
    action: entry.action,
    subjectId: entry.subjectId,
    detail: Object.entries(entry.detail ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("\n"),
  });
  stamp(slots.at, entry.at);
}

// ---- Sections

const views = {
  keys: { id: "id", label: "name", fill: fillKey, fetch: () => get("/keys") },
  webhooks: { id: "id", label: "url", fill: fillWebhook, fetch: () => get("/webhooks") },
  deliveries: {
    id: "position", label: "eventId", fill: fillAttempt, fetch: loadLog,
    more: (before) => get("/webhooks/attempts", { webhookId: logOf, limit: PAGE_ROWS, before }),
  },
  changes: {
    id: "position", fill: fillChange, fetch: () => get("/audit", { limit: PAGE_ROWS }),
    more: (before) => get("/audit", { limit: PAGE_ROWS, before }),
  },
};

const here = () => {
  const name = location.hash.slice(1).split("/")[0];
  return Object.hasOwn(views, name) ? name : "keys";
};

// Fetches the records of a section again, or with `older` those that are older than its last row.
async function load(name, quietly = false, older = false) {
  const view = views[name];
  const section = document.getElementById(name);
  const [state, again] = [one(".state span", section), one("[data-act=reload]", section)];
  const turned = (view.turn = (view.turn ?? 0) + 1);
  if (!quietly) state.textContent = "Loading …";
  again.hidden = true;
  try {
    const known = view.records;
    const found = await (older ? view.more(known.at(-1).position) : view.fetch());
    // A newer fetch of the section has begun, or the session has ended.
    if (turned !== view.turn || !session) return;
    if (older) {
      view.records = [...known, ...found];
    } else {
      // Older rows stay if the fetched rows reach down to them; otherwise there would be a gap.
      const reaches = view.more && found.length === PAGE_ROWS && view.of === logOf ? found.at(-1).position : undefined;
      const joins = known.some(({ position }) => position === reaches);
      view.records = joins ? [...found, ...known.filter(({ position }) => position < reaches)] : found;
    }
    view.of = logOf;
    if (view.more && (older || found.length === view.records.length)) one(".older", section).hidden = found.length < PAGE_ROWS;
    show(one(".list", section), view.records, view);
    section.classList.toggle("empty", !view.records.length);
    state.textContent = view.records.length ? "" : section.dataset.empty;
  } catch (refused) {
    if (turned !== view.turn || !session) return;
    state.textContent = refused.message;
    again.hidden = false;
  } finally {
    if (turned === view.turn && name === "deliveries") keepRefreshing();
  }
}

// After a change: reloads the section, and moves the focus to its heading if the row that had the focus is gone.
async function changed(text) {
  say(text);
  hurried = 6;
  await load(here(), true);
  if (session && document.activeElement === document.body) one(`#${here()} h2`).focus();
}

// Shows the section that the address names.
async function turn() {
  clearTimeout(refreshing);
  const name = here();
  for (const section of all("section")) section.hidden = section.id !== name;
  for (const link of all("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (name === "deliveries") {
    const asked = location.hash.split("/")[1] ?? logOf;
    if (asked !== logOf) one("#deliveries .list").replaceChildren();
    logOf = asked;
  }
  await load(name);
}

// ---- Actions of the user

const acts = {
  ...keyActs,
  ...webhookActs,
  ...logActs,
  copy,
  close: (_, button) => button.closest("dialog").close(),
  reload: () => load(here()),
  older: () => load(here(), false, true),
  async "sign-out"() {
    await remove("/session");
    leave({ status: 200, message: "You are signed out." });
  },
};

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-act]");
  if (!button) return;
  try {
    await acts[button.dataset.act](button.closest("[data-id]")?.dataset.id, button);
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    if (session) say(refused.message);
  }
});

addEventListener("hashchange", async () => {
  if (location.hash.startsWith("#link=")) return enter();
  if (!session) return;
  await turn();
  scrollTo(0, 0);
  one(`#${here()} h2`).focus();
});

one("#gate-again").addEventListener("click", enter);

await enter();
