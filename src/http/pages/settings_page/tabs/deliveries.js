// The tab of the delivery log: the attempts to deliver events to a webhook. The tab shows one webhook at a time.

import { PAGE_ROWS, add, changed, table } from "../tabs.js";
import { openDialog } from "../dialogs.js";
import { badge, one, options, stamp } from "../dom_helpers.js";
import { get, post } from "../settings_api.js";
import { t } from "../localization.js";

const ROW = `<template id="attempt-row"><tr role="row">
  <td role="cell" data-label="${t("delivery-time")}"><time data-slot="startedAt" data-time="medium"></time></td>
  <td role="cell" data-label="${t("delivery-event")}"><span data-slot="type"></span> <code data-slot="eventId"></code></td>
  <td role="cell" data-label="${t("delivery-attempt")}" data-slot="attempt"></td>
  <td role="cell" data-label="${t("delivery-answer")}"><span data-slot="answer"></span> <small data-slot="took"></small></td>
  <td role="cell" data-label="${t("delivery-outcome")}"><span class="badge" data-slot="outcome"></span></td>
  <td role="cell" data-label="${t("delivery-next")}"><time data-slot="nextAttemptAt" data-time="medium"></time></td>
  <td role="cell" class="actions"><button type="button" class="quiet" data-act="show-attempt">${t("delivery-details")}</button>
    <button type="button" class="quiet" data-act="replay-one">${t("replay")}</button></td>
</tr></template>`;

const DIALOG = `<dialog id="replay-dialog" aria-labelledby="replay-title"><form method="dialog">
  <h2 id="replay-title">${t("replay-title")}</h2>
  <label>${t("replay-from")} <input name="since" type="datetime-local" step="1" autofocus></label>
  <label>${t("replay-until")} <input name="until" type="datetime-local" step="1"></label>
  <p class="hint">${t("replay-zone")}</p>
  <label class="box"><input name="missing" type="checkbox" checked> ${t("replay-missing")}</label>
  <p id="replay-count" role="status"></p>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">${t("cancel")}</button> <button class="main" id="replay-go">${t("replay-count")}</button></p>
</form></dialog>`;

const DETAILS = `<dialog id="attempt-dialog" aria-labelledby="attempt-title"><form method="dialog">
  <h2 id="attempt-title"></h2>
  <h3 id="attempt-sent-title">${t("delivery-sent")}</h3>
  <pre id="attempt-sent" tabindex="0" role="group" aria-labelledby="attempt-sent-title"></pre>
  <h3 id="attempt-answer-title">${t("delivery-answer")}</h3>
  <p id="attempt-outcome"></p>
  <pre id="attempt-answer" tabindex="0" role="group" aria-labelledby="attempt-answer-title"></pre>
  <p class="buttons"><button class="main" autofocus>${t("close")}</button></p>
</form></dialog>`;

const TONES = { delivered: "good", retrying: "warn", late: "warn", given_up: "bad", disabled: "bad" };

// Returns whether the tab shows a later attempt to deliver the same event. If so, `attempt` is no longer waiting for a repetition.
const isOvertaken = (attempt) => view.records.some((other) => other.eventId === attempt.eventId && other.position > attempt.position);

function fillAttempt(attempt, slots, text) {
  const waits = attempt.outcome === "retrying" && !isOvertaken(attempt);
  text({
    type: attempt.type,
    eventId: attempt.eventId,
    attempt: attempt.attempt,
    answer: attempt.status ?? attempt.reason ?? t("delivery-no-answer"),
    took: t("delivery-millis", { millis: attempt.millis }),
  });
  badge(slots.outcome, t(attempt.outcome === "retrying" && !waits ? "outcome-failed" : `outcome-${attempt.outcome}`), TONES[attempt.outcome] ?? "warn");
  stamp(slots.startedAt, attempt.startedAt);
  stamp(slots.nextAttemptAt, waits ? attempt.nextAttemptAt : undefined);
}

async function loadLog() {
  const webhooks = await get("/webhooks");
  if (!webhooks.some((webhook) => webhook.id === view.shownOf)) view.shownOf = webhooks[0]?.id;
  options(one("#log-webhook"), webhooks.map((webhook) => [webhook.id, webhook.url]), view.shownOf);
  one("#log-filter").hidden = one("[data-act=replay-range]").hidden = !view.shownOf;
  return view.shownOf ? get("/webhooks/attempts", { webhookId: view.shownOf, limit: PAGE_ROWS }) : [];
}

const acts = {
  async "show-attempt"(position) {
    const attempt = view.records.find((attempt) => String(attempt.position) === position);
    const { body } = await get("/webhooks/sent", { webhookId: view.shownOf, eventId: attempt.eventId });
    one("#attempt-title").textContent = t("delivery-title", { number: attempt.attempt, kind: attempt.type });
    one("#attempt-sent").textContent = body;
    one("#attempt-outcome").textContent = attempt.status ? t("delivery-status", attempt) : t("delivery-none", attempt);
    one("#attempt-answer").textContent = attempt.answer ?? "";
    one("#attempt-answer").hidden = !attempt.answer;
    one("#attempt-dialog").showModal();
  },
  async "replay-one"(position) {
    const attempt = view.records.find((attempt) => String(attempt.position) === position);
    const { count } = await post("/webhooks/replay", { webhookId: view.shownOf, eventId: attempt.eventId });
    await changed(t(count ? "replay-one" : "replay-not"));
  },
  async "replay-range"() {
    const dialog = one("#replay-dialog");
    const form = one("form", dialog);
    const go = one("#replay-go");
    const uncounted = () => {
      go.textContent = t("replay-count");
      one("#replay-count").textContent = "";
      counted = undefined;
    };
    let counted;
    form.reset();
    uncounted();
    form.oninput = uncounted;
    const instant = (local) => (local ? new Date(local).toISOString() : undefined);
    const sent = await openDialog(dialog, async (data) => {
      if (counted) return post("/webhooks/replay", counted);
      const order = { webhookId: view.shownOf, since: instant(data.get("since")), until: instant(data.get("until")), missing: data.has("missing") };
      const { count } = await post("/webhooks/replay", { ...order, dryRun: true });
      one("#replay-count").textContent = count ? t("replay-counted", { count }) : t("replay-none");
      if (count) {
        counted = order;
        go.textContent = t("replay-go", { count });
      }
    });
    if (sent) await changed(t("replay-queued", { count: sent.count }));
  },
};

const view = add({
  name: "deliveries", id: "position", label: "eventId", fill: fillAttempt, fetch: loadLog, acts, refresh: 3000,
  more: (before) => get("/webhooks/attempts", { webhookId: view.shownOf, limit: PAGE_ROWS, before }),
  empty: () => (view.shownOf ? "deliveries-empty" : "webhooks-empty"),
  turn(webhook) {
    const asked = webhook ?? view.shownOf;
    if (asked !== view.shownOf) one("#deliveries .list").replaceChildren();
    view.shownOf = asked;
  },
  head: `<button type="button" data-act="replay-range">${t("replay-range")}</button>`,
  body: `<p class="filter" id="log-filter"><label for="log-webhook">${t("delivery-webhook")}</label> <select id="log-webhook"></select></p>
    <state>${table("deliveries", "attempt-row", ["delivery-time", "delivery-event", "delivery-attempt", "delivery-answer", "delivery-outcome", "delivery-next", "actions"])}`,
  outside: ROW + DIALOG + DETAILS,
});

one("#log-webhook").addEventListener("change", ({ target }) => (location.hash = `#deliveries/${target.value}`));
