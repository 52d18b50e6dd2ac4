// The tab of undelivered messages: failed ones, and pending ones, which the server still tries to send.

import { add, changed, here, load, table } from "../tabs.js";
import { announce, badge, one, stamp } from "../dom_helpers.js";
import { accountText, get, known, post } from "../settings_api.js";
import { t } from "../localization.js";

const LIMIT = 200;
// The pause after a click on "Send again" or "Try now", before the tab checks whether the channel has accepted the message.
const ATTEMPT_MILLIS = 1500;

const ROW = `<template id="undelivered-row"><tr role="row">
  <td role="cell" data-label="${t("undelivered-message")}"><span class="message" data-slot="message"></span></td>
  <td role="cell" data-label="${t("undelivered-contact")}"><span data-slot="contact"></span> <small data-slot="account"></small></td>
  <td role="cell" data-label="${t("undelivered-sent")}"><time data-slot="sentAt" data-time="short"></time></td>
  <td role="cell" data-label="${t("undelivered-state")}"><span class="badge" data-slot="state"></span> <small data-slot="attempts"></small></td>
  <td role="cell" data-label="${t("undelivered-reason")}" data-slot="reason"></td>
  <td role="cell" data-label="${t("undelivered-next")}"><time data-slot="nextAttemptAt" data-time="medium"></time></td>
  <td role="cell" class="actions"><button type="button" class="quiet" data-act="retry-message"></button></td>
</tr></template>`;

// The text for each failure reason that comes from this server and not from the channel.
const REASONS = { no_connector: t("undelivered-no-bridge") };

const textOf = (message) => message.text ?? t("undelivered-no-text");

function fillMessage(message, slots, text, button) {
  text({
    message: textOf(message),
    contact: message.contactName,
    account: accountText(message.accountId),
    attempts: message.attempts === undefined ? "" : t("undelivered-attempts", { count: message.attempts }),
    reason: REASONS[message.reason] ?? message.reason,
  });
  badge(slots.state, t(`undelivered-${message.state}`), message.state === "failed" ? "bad" : "warn");
  stamp(slots.sentAt, message.sentAt);
  stamp(slots.nextAttemptAt, message.nextAttemptAt);
  button("retry-message").textContent = t(message.state === "failed" ? "undelivered-again" : "undelivered-now");
  button("retry-message").hidden = !message.canBeRetried;
}

async function fetchMessages() {
  // The pending messages are requested before the failed ones. So a message that fails between the two requests is in both responses. In
  // the opposite order it could be in neither.
  const pending = await get("/messages/undelivered", { state: "pending", limit: LIMIT });
  const found = [await get("/messages/undelivered", { state: "failed", limit: LIMIT }), pending];
  one("#undelivered-more").hidden = found.every((messages) => messages.length < LIMIT);
  return [...new Map(found.flat().map((message) => [message.messageId, message])).values()];
}

const acts = {
  async "retry-message"(messageId) {
    const { contactName } = view.records.find((message) => message.messageId === messageId) ?? {};
    await post("/messages/retry", { messageId });
    await changed(t("undelivered-queued"));
    const { session } = known;
    await new Promise((done) => setTimeout(done, ATTEMPT_MILLIS));
    if (!session || known.session !== session || here() !== view.name) return;
    await load(view.name, true);
    const isComplete = one("#undelivered-more").hidden;
    const isListed = view.records.some((message) => message.messageId === messageId);
    if (known.session === session && isComplete && !isListed) announce(t("undelivered-delivered", { contact: contactName ?? "" }));
  },
};

const view = add({
  name: "undelivered", id: "messageId", label: (message) => textOf(message).slice(0, 60), fill: fillMessage, fetch: fetchMessages, acts, refresh: 5000,
  body: `<state>${table("undelivered", "undelivered-row", ["undelivered-message", "undelivered-contact", "undelivered-sent", "undelivered-state", "undelivered-reason", "undelivered-next", "actions"])}
    <p class="hint" id="undelivered-more" hidden>${t("undelivered-more", { limit: LIMIT })}</p>`,
  outside: ROW,
});
