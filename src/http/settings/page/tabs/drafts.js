// The tab of drafts: messages that an assistant proposes, each with the last messages of its conversation.

import { add, changed, table, ACTIONS } from "../sections.js";
import { converse, sure } from "../dialogs.js";
import { one, stamp } from "../elements.js";
import { get, patch, post, remove } from "../plane.js";

const ROW = `<template id="draft-row"><tr role="row">
  <td role="cell" data-label="Message"><span class="message" data-slot="message"></span></td>
  <td role="cell" data-label="Conversation"><code data-slot="conversation"></code></td>
  <td role="cell" data-label="By"><span data-slot="by"></span></td>
  <td role="cell" data-label="Made"><time data-slot="createdAt" data-time="short"></time></td>
  <td role="cell" data-label="Expires"><time data-slot="expiresAt" data-time="short"></time></td>
  <td role="cell" class="actions"><button type="button" class="quiet" data-act="review-draft">Review</button></td>
</tr></template>`;

const MESSAGE = `<template id="draft-message-row"><li><small><span data-slot="from"></span>, <time data-slot="sentAt" data-time="short"></time></small>
  <p class="message" data-slot="text"></p></li></template>`;

const DIALOG = `<dialog id="draft-dialog" aria-labelledby="draft-title"><form method="dialog">
  <h2 id="draft-title">Review a draft</h2>
  <p class="trouble" id="draft-news" role="alert" hidden></p>
  <h3 id="draft-before">The conversation</h3>
  <ol class="talk" id="draft-messages" data-row="draft-message-row" aria-labelledby="draft-before" tabindex="0"></ol>
  <label>Message <textarea name="text" rows="5" required></textarea></label>
  <p class="hint" id="draft-fixed"></p>
  <p class="failure" role="alert"></p>
  <p class="buttons">
    <button type="button" class="quiet danger" id="draft-discard">Discard</button>
    <button type="button" data-act="close">Cancel</button>
    <button class="main" id="draft-release">Send</button>
  </p>
</form></dialog>`;

const textOf = (draft) => draft.body.text ?? draft.body.body ?? "";

function fillDraft(draft, slots, text) {
  text({ message: textOf(draft) || draft.operation, conversation: draft.conversationId ?? draft.accountId, by: draft.keyName });
  stamp(slots.createdAt, draft.createdAt);
  stamp(slots.expiresAt, draft.expiresAt);
}

// Shows the messages of the conversation, the oldest first. Returns them.
async function showMessages(draft) {
  const messages = await get("/drafts/messages", { draftId: draft.id });
  const template = one("#draft-message-row").content.firstElementChild;
  one("#draft-messages").replaceChildren(...messages.toReversed().map((message) => {
    const row = template.cloneNode(true);
    one("[data-slot=from]", row).textContent = message.fromContact ? "Contact" : "Store";
    one("[data-slot=text]", row).textContent = message.text ?? message.images?.join("\n") ?? "(no text)";
    row.classList.toggle("inbound", message.fromContact);
    stamp(one("[data-slot=sentAt]", row), message.sentAt);
    return row;
  }));
  const list = one("#draft-messages");
  list.scrollTop = list.scrollHeight;
  return messages;
}

const acts = {
  async "review-draft"(id) {
    let draft = view.records.find((draft) => draft.id === id);
    const dialog = one("#draft-dialog");
    const { text } = one("form", dialog).elements;
    // What is not a text is sent as the assistant wrote it, or discarded.
    const isText = typeof draft.body.text === "string";
    text.value = isText ? draft.body.text : JSON.stringify(draft.body, undefined, 2);
    text.readOnly = !isText;
    one("#draft-fixed").textContent = isText ? "" : "This message cannot be edited here.";
    one("#draft-news").hidden = true;
    await showMessages(draft);
    // The newest message of the contact that the person was shown after the contact wrote again.
    let confirmed;
    const ended = converse(dialog, async (data) => {
      if (isText && data.get("text") !== draft.body.text) {
        draft = await patch("/drafts", { draftId: id, body: { ...draft.body, text: data.get("text") } });
      }
      try {
        return await post("/drafts/release", { draftId: id, ...(confirmed && { confirmedMessageId: confirmed }) });
      } catch (refused) {
        const [, newest] = /wrote message `([^`]+)`.*`confirmedMessageId`/.exec(refused.message) ?? [];
        if (!newest) throw refused;
        await showMessages(draft);
        confirmed = newest;
        one("#draft-news").textContent = "The contact wrote after the draft was made. Read the last messages; if the draft still fits, send it.";
        one("#draft-news").hidden = false;
      }
    });
    one("#draft-discard").onclick = async () => {
      dialog.close();
      const perform = () => remove("/drafts", { draftId: id });
      if (await sure("Discard the draft?", "Its message is never sent.", "Discard", perform, { grave: true })) await changed("The draft was discarded.");
    };
    if (await ended) await changed("The message was sent.");
  },
};

const view = add({
  name: "drafts", title: "Drafts", id: "id", label: "conversationId", fill: fillDraft, fetch: () => get("/drafts"), acts, refresh: 5000,
  empty: "There are no drafts to review.",
  body: `<p class="hint">Messages that an assistant proposes. Each is sent once a person releases it, and expires after seven days.</p>
    <state>${table("drafts", "draft-row", ["Message", "Conversation", "By", "Made", "Expires", ACTIONS])}`,
  outside: ROW + MESSAGE + DIALOG,
});
