// The tab of webhooks: a list of the webhooks, with buttons to create, edit, test, disable and delete them, and to rotate their secrets.

import { add, changed, confirmAndPerform, hurry } from "../tabs.js";
import { openDialog, showSecret } from "../dialogs.js";
import { all, announce, badge, boxes, clock, one, options, stamp } from "../dom_helpers.js";
import { Refused, accountText, get, known, patch, post, remove } from "../settings_api.js";
import { t } from "../localization.js";

const ROW = `<template id="webhook-row"><li>
  <p class="url"><code data-slot="url"></code> <span class="badge" data-slot="state"></span></p>
  <p class="trouble" data-slot="trouble"></p>
  <dl>
    <dt>${t("events")}</dt><dd data-slot="events"></dd>
    <dt>${t("account")}</dt><dd data-slot="account"></dd>
    <dt>${t("created")}</dt><dd><time data-slot="createdAt"></time></dd>
  </dl>
  <p class="actions">
    <a data-slot="log">${t("webhook-log")}</a>
    <button type="button" class="quiet" data-act="test-webhook">${t("webhook-test")}</button>
    <button type="button" class="quiet" data-act="edit-webhook">${t("edit")}</button>
    <button type="button" class="quiet" data-act="rotate-webhook">${t("webhook-rotate")}</button>
    <button type="button" class="quiet" data-act="disable-webhook">${t("webhook-disable")}</button>
    <button type="button" class="quiet" data-act="enable-webhook">${t("webhook-enable")}</button>
    <button type="button" class="quiet danger" data-act="delete-webhook">${t("delete")}</button>
  </p>
</li></template>`;

const DIALOG = `<dialog id="webhook-dialog" aria-labelledby="webhook-dialog-title"><form method="dialog">
  <h2 id="webhook-dialog-title"></h2>
  <label>${t("address")} <input name="url" type="url" required maxlength="2048" placeholder="https://example.com/hooks" autocomplete="off" autofocus></label>
  <fieldset><legend>${t("events")}</legend><div class="boxes" id="kinds"></div></fieldset>
  <p><button type="button" class="quiet" data-act="every-kind">${t("webhook-choose-all")}</button> <button type="button" class="quiet" data-act="no-kind">${t("webhook-choose-none")}</button></p>
  <p class="hint">${t("webhook-kinds-hint")}</p>
  <label>${t("account")} <select name="accountId"></select></label>
  <p class="hint">${t("webhook-account-hint")}</p>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">${t("cancel")}</button> <button class="main">${t("save")}</button></p>
</form></dialog>`;

const webhook = (id) => view.records.find((webhook) => webhook.id === id);

function fillWebhook(webhook, slots, text, button) {
  const { enabled, failingSince } = webhook;
  text({
    url: webhook.url,
    events: webhook.events.length === known.kinds.length ? t("webhook-every-kind") : webhook.events.join(", "),
    account: webhook.accountId ? accountText(webhook.accountId) : t("every-account"),
    trouble: enabled ? failingSince && t("webhook-failing-since", { time: clock(failingSince, { dateStyle: "medium", timeStyle: "short" }) })
      : t("webhook-disabled-reason", { reason: webhook.disabledReason ?? t("webhook-no-reason") }),
  });
  slots.trouble.title = failingSince ?? "";
  slots.trouble.hidden = !slots.trouble.textContent;
  if (enabled) badge(slots.state, t(failingSince ? "webhook-state-failing" : "webhook-state-enabled"), failingSince ? "warn" : "good");
  else badge(slots.state, t("webhook-state-disabled"), "bad");
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
  // The webhook's own account is always an option, even if the account was added after the list of accounts was fetched. Otherwise
  // saving would change the webhook to the events of every account.
  const ids = new Set([...known.accounts.map((account) => account.accountId), ...(former?.accountId ? [former.accountId] : [])]);
  options(accountId, [["", t("every-account")], ...[...ids].map((id) => [id, accountText(id)])], former?.accountId);
  one("#webhook-dialog-title").textContent = title;
  url.value = former?.url ?? "";
  return openDialog(dialog, (data) => {
    const events = data.getAll("events");
    if (!events.length) throw new Refused(0, t("webhook-no-kind"));
    // If the user selects all kinds, the webhook also receives events of kinds that are added later. For this, the request that creates a
    // webhook leaves `events` out, and the request that changes a webhook sends null.
    const every = former ? null : undefined;
    return perform({ url: data.get("url"), events: events.length === known.kinds.length ? every : events, accountId: data.get("accountId") || null });
  });
}

const tickKinds = (checked) => all("#kinds input").forEach((box) => (box.checked = checked));

const acts = {
  "every-kind": () => tickKinds(true),
  "no-kind": () => tickKinds(false),
  async "create-webhook"() {
    const made = await webhookForm(t("webhook-add"), undefined, (hook) => post("/webhooks", hook));
    if (!made) return;
    await showSecret(t("webhook-secret"), made.secret, t("webhook-secret-note"));
    await changed(t("webhook-added"));
  },
  async "edit-webhook"(id) {
    const perform = (hook) => patch("/webhooks", { webhookId: id, ...hook });
    if (await webhookForm(t("webhook-edit"), webhook(id), perform)) await changed(t("webhook-changed"));
  },
  "rotate-webhook"(id) {
    const { url } = webhook(id);
    const text = t("webhook-rotate-text", { url });
    const perform = (ended) => post("/webhooks/rotate", { webhookId: id, ...(ended && { endFormerSecrets: true }) });
    const note = (ended) => t(ended ? "former-secret-ended" : "webhook-rotate-note");
    return confirmAndPerform(t("webhook-rotate-title"), text, t("rotate"), perform, t("webhook-rotated"), { secretOf: t("webhook-secret-of", { url }), note, box: t("end-former-secret") });
  },
  async "test-webhook"(id) {
    await post("/webhooks/test", { webhookId: id });
    hurry();
    location.hash = `#deliveries/${id}`;
    announce(t("webhook-tested"));
  },
  "disable-webhook"(id) {
    const text = t("webhook-disable-text", { url: webhook(id).url });
    const perform = () => post("/webhooks/disable", { webhookId: id });
    return confirmAndPerform(t("webhook-disable-title"), text, t("webhook-disable"), perform, t("webhook-disabled"), { grave: true });
  },
  async "enable-webhook"(id) {
    await post("/webhooks/enable", { webhookId: id });
    await changed(t("webhook-enabled"));
  },
  "delete-webhook"(id) {
    const text = t("webhook-delete-text", { url: webhook(id).url });
    const perform = () => remove("/webhooks", { webhookId: id });
    return confirmAndPerform(t("webhook-delete-title"), text, t("delete"), perform, t("webhook-deleted"), { grave: true });
  },
};

const view = add({
  name: "webhooks", id: "id", label: "url", fill: fillWebhook, fetch: () => get("/webhooks"), acts,
  head: `<button type="button" class="main" data-act="create-webhook">${t("webhook-add")}</button>`,
  body: `<state><ul class="list cards" data-row="webhook-row"></ul>`,
  outside: ROW + DIALOG,
});
