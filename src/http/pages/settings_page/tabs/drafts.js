// The tab of drafts: messages to contacts that an AI assistant proposed, and that the user sends, edits or discards. The dialog of a draft
// also shows the last messages of the conversation.

import { add, changed, confirmAndPerform, table } from "../tabs.js";
import { openDialog } from "../dialogs.js";
import { one, stamp } from "../dom_helpers.js";
import { accountText, get, patch, post, remove } from "../settings_api.js";
import { t } from "../localization.js";

const ROW = `<template id="draft-row"><tr role="row">
  <td role="cell" data-label="${t("draft-message")}"><span class="message" data-slot="message"></span></td>
  <td role="cell" data-label="${t("draft-to")}"><span data-slot="to"></span> <small data-slot="account"></small></td>
  <td role="cell" data-label="${t("draft-by")}"><span data-slot="by"></span></td>
  <td role="cell" data-label="${t("draft-made")}"><time data-slot="createdAt" data-time="short"></time></td>
  <td role="cell" data-label="${t("expires")}"><time data-slot="expiresAt" data-time="short"></time></td>
  <td role="cell" class="actions"><button type="button" class="quiet" data-act="review-draft">${t("draft-review")}</button></td>
</tr></template>`;

const MESSAGE = `<template id="draft-message-row"><li><small><span data-slot="from"></span>, <time data-slot="sentAt" data-time="short"></time></small>
  <p class="message" data-slot="text"></p></li></template>`;

const DIALOG = `<dialog id="draft-dialog" aria-labelledby="draft-title"><form method="dialog">
  <h2 id="draft-title">${t("draft-title")}</h2>
  <p id="draft-recipient"></p>
  <p class="trouble" id="draft-news" role="alert" hidden></p>
  <h3 id="draft-before">${t("draft-talk")}</h3>
  <ol class="talk" id="draft-messages" data-row="draft-message-row" aria-labelledby="draft-before" tabindex="0"></ol>
  <label>${t("draft-message")} <textarea name="text" rows="5" required></textarea></label>
  <p class="hint" id="draft-fixed"></p>
  <p class="failure" role="alert"></p>
  <p class="buttons">
    <button class="quiet danger" name="act" value="discard" formnovalidate>${t("draft-discard")}</button>
    <button type="button" data-act="close">${t("cancel")}</button>
    <button class="main" name="act" value="send">${t("draft-send")}</button>
  </p>
</form></dialog>`;

// Only text messages can be edited here. Any other message, such as an e-mail with its recipients, is shown whole, and is sent as it is or
// discarded.
const isText = (draft) => draft.operation === "sendTextMessage";
const contentOf = (draft) => (isText(draft) ? draft.body.text : JSON.stringify(draft.body, undefined, 2));

// Returns to whom the message goes: the name of the contact or, if there is no conversation yet, the phone number or e-mail addresses in
// the body of the draft.
const recipientOf = ({ contactName, body }) => contactName ?? body.phoneNumber ?? (body.to ?? []).map((to) => to.email ?? to).join(", ");

function fillDraft(draft, slots, text) {
  text({ message: contentOf(draft), to: recipientOf(draft), account: accountText(draft.accountId), by: draft.keyName });
  stamp(slots.createdAt, draft.createdAt);
  stamp(slots.expiresAt, draft.expiresAt);
}

const pending = () => get("/drafts", { limit: 500 });

// Shows the messages of the conversation, the oldest first.
function showMessages(messages) {
  const template = one("#draft-message-row").content.firstElementChild;
  one("#draft-messages").replaceChildren(...messages.toReversed().map((message) => {
    const row = template.cloneNode(true);
    one("[data-slot=from]", row).textContent = t(message.fromContact ? "draft-contact" : "draft-store");
    one("[data-slot=text]", row).textContent = message.text ?? message.images?.join("\n") ?? t("draft-no-text");
    row.classList.toggle("inbound", message.fromContact);
    stamp(one("[data-slot=sentAt]", row), message.sentAt);
    return row;
  }));
}

const scrollToNewest = () => (one("#draft-messages").scrollTop = one("#draft-messages").scrollHeight);

function showNotice(text) {
  one("#draft-news").textContent = text;
  one("#draft-news").hidden = !text;
}

function showContent(draft) {
  const { text } = one("#draft-dialog form").elements;
  text.value = contentOf(draft);
  text.readOnly = !isText(draft);
  one("#draft-fixed").textContent = isText(draft) ? "" : t("draft-fixed");
}

let reviews = 0;

const acts = {
  async "review-draft"(id) {
    const review = (reviews += 1);
    let draft = view.records.find((draft) => draft.id === id);
    const messages = await get("/drafts/messages", { draftId: id });
    const dialog = one("#draft-dialog");
    // The user may have opened another draft while the messages were fetched.
    if (review !== reviews || dialog.open) return;
    showMessages(messages);
    showContent(draft);
    one("#draft-recipient").textContent = t("draft-recipient", { contact: recipientOf(draft), account: accountText(draft.accountId) });
    showNotice("");
    // The id of the newest message that the contact sent after the draft was made. It is set after the page has shown this message to the
    // user, and tells the server that the user has seen the message.
    let confirmed;
    const ended = openDialog(dialog, async (data) => {
      if (data.get("act") === "discard") return { discard: true };
      const now = (await pending()).find((draft) => draft.id === id);
      if (now && now.updatedAt !== draft.updatedAt) {
        draft = now;
        showContent(draft);
        showNotice(t("draft-edited"));
        return undefined;
      }
      if (isText(draft) && data.get("text") !== draft.body.text) {
        draft = await patch("/drafts", { draftId: id, body: { ...draft.body, text: data.get("text") } });
      }
      try {
        return await post("/drafts/release", { draftId: id, ...(confirmed && { confirmedMessageId: confirmed }) });
      } catch (refused) {
        // The id of the newest message comes from the error message, not from the list of messages: the list is in the order of the times
        // that the channel sets, and the server expects the message that arrived last.
        const [, newest] = /wrote message `([^`]+)`.*`confirmedMessageId`/.exec(refused.message) ?? [];
        if (!newest) throw refused;
        showMessages(await get("/drafts/messages", { draftId: id }));
        scrollToNewest();
        confirmed = newest;
        showNotice(t("draft-news"));
        return undefined;
      }
    });
    scrollToNewest();
    const result = await ended;
    if (result && !result.discard) return changed(t("draft-was-sent"));
    const perform = () => remove("/drafts", { draftId: id });
    if (result) await confirmAndPerform(t("draft-discard-title"), t("draft-discard-text"), t("draft-discard"), perform, t("draft-discarded"), { grave: true });
  },
};

const view = add({
  name: "drafts", id: "id", label: (draft) => contentOf(draft).slice(0, 60), fill: fillDraft, fetch: pending, acts, refresh: 5000,
  body: `<state>${table("drafts", "draft-row", ["draft-message", "draft-to", "draft-by", "draft-made", "expires", "actions"])}`,
  outside: ROW + MESSAGE + DIALOG,
});
