// The tab of webhooks.

import { add, changed, surely, hurry } from "../sections.js";
import { converse, tellSecret } from "../dialogs.js";
import { badge, boxes, clock, one, options, say, stamp } from "../elements.js";
import { Refused, accountText, get, known, patch, post, remove } from "../plane.js";

const ROW = `<template id="webhook-row"><li>
  <p class="url"><code data-slot="url"></code> <span class="badge" data-slot="state"></span></p>
  <p class="trouble" data-slot="trouble"></p>
  <dl>
    <dt>Events</dt><dd data-slot="events"></dd>
    <dt>Account</dt><dd data-slot="account"></dd>
    <dt>Created</dt><dd><time data-slot="createdAt"></time></dd>
  </dl>
  <p class="actions">
    <a data-slot="log">Delivery log</a>
    <button type="button" class="quiet" data-act="test-webhook">Send test event</button>
    <button type="button" class="quiet" data-act="edit-webhook">Edit</button>
    <button type="button" class="quiet" data-act="rotate-webhook">Rotate secret</button>
    <button type="button" class="quiet" data-act="disable-webhook">Disable</button>
    <button type="button" class="quiet" data-act="enable-webhook">Enable</button>
    <button type="button" class="quiet danger" data-act="delete-webhook">Delete</button>
  </p>
</li></template>`;

const DIALOG = `<dialog id="webhook-dialog" aria-labelledby="webhook-dialog-title"><form method="dialog">
  <h2 id="webhook-dialog-title"></h2>
  <label>Address <input name="url" type="url" required maxlength="2048" placeholder="https://example.com/hooks" autocomplete="off" autofocus></label>
  <fieldset><legend>Events</legend><div class="boxes" id="kinds"></div></fieldset>
  <p class="hint">If all are ticked, kinds that are added later are included.</p>
  <label>Account <select name="accountId"></select></label>
  <p class="hint">If one account is chosen, events of contacts are not sent.</p>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">Cancel</button> <button class="main">Save</button></p>
</form></dialog>`;

const webhook = (id) => view.records.find((webhook) => webhook.id === id);

function fillWebhook(webhook, slots, text, button) {
  const { enabled, failingSince } = webhook;
  text({
    url: webhook.url,
    events: webhook.events.length === known.kinds.length ? "every kind" : webhook.events.join(", "),
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
  boxes(one("#kinds"), "events", known.kinds.map((kind) => [kind, kind]), former?.events ?? known.kinds);
  // The webhook's own account can always be chosen, even if it was added after the list was fetched. Otherwise saving would select every
  // account.
  const ids = new Set([...known.accounts.map((account) => account.accountId), ...(former?.accountId ? [former.accountId] : [])]);
  options(accountId, [["", "every account"], ...[...ids].map((id) => [id, accountText(id)])], former?.accountId);
  one("#webhook-dialog-title").textContent = title;
  url.value = former?.url ?? "";
  return converse(dialog, (data) => {
    const events = data.getAll("events");
    if (!events.length) throw new Refused(0, "Choose at least one kind of event.");
    // If all kinds are ticked, kinds that are added later are included: a new webhook leaves `events` out, a change sends null.
    const every = former ? null : undefined;
    return perform({ url: data.get("url"), events: events.length === known.kinds.length ? every : events, accountId: data.get("accountId") || null });
  });
}

const acts = {
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
    return surely("Rotate the signing secret?", text, "Rotate", () => post("/webhooks/rotate", { webhookId: id }), "The secret was rotated.", { note });
  },
  async "test-webhook"(id) {
    await post("/webhooks/test", { webhookId: id });
    hurry();
    location.hash = `#deliveries/${id}`;
    say("A test event is on its way.");
  },
  "disable-webhook"(id) {
    const text = `No more events are sent to ${webhook(id).url}, and the events that wait for it are dropped.`;
    return surely("Disable the webhook?", text, "Disable", () => post("/webhooks/disable", { webhookId: id }), "The webhook is disabled.");
  },
  async "enable-webhook"(id) {
    await post("/webhooks/enable", { webhookId: id });
    await changed("The webhook is enabled. Events that it missed can be replayed from its delivery log.");
  },
  "delete-webhook"(id) {
    const text = `No more events are sent to ${webhook(id).url}, and its delivery log is deleted permanently.`;
    const perform = () => remove("/webhooks", { webhookId: id });
    return surely("Delete the webhook?", text, "Delete", perform, "The webhook was deleted.", { grave: true });
  },
};

const view = add({
  name: "webhooks", title: "Webhooks", id: "id", label: "url", fill: fillWebhook, fetch: () => get("/webhooks"), acts, empty: "There are no webhooks yet.",
  head: '<button type="button" class="main" data-act="create-webhook">Add webhook</button>',
  body: `<p class="hint">Events are sent to an endpoint as they happen, signed in the form of Standard Webhooks.</p>
    <state><ul class="list cards" data-row="webhook-row"></ul>`,
  outside: ROW + DIALOG,
});
