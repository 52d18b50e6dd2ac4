// The tab of sessions, tokens, and links that were not used yet.

import { ACTIONS, add, surely, table } from "../sections.js";
import { badge, stamp } from "../elements.js";
import { get, nameOf, remove } from "../plane.js";

const ROW = `<template id="session-row"><tr role="row">
  <td role="cell" data-label="Who"><strong data-slot="user"></strong> <small data-slot="sentTo"></small></td>
  <td role="cell" data-label="Kind"><span class="badge" data-slot="kind"></span></td>
  <td role="cell" data-label="Permits" data-slot="can"></td>
  <td role="cell" data-label="Made"><time data-slot="made" data-time="medium"></time></td>
  <td role="cell" data-label="Ends"><time data-slot="ends" data-time="medium"></time></td>
  <td role="cell" class="actions"><button type="button" class="quiet danger" data-act="end-credential">End</button></td>
</tr></template>`;

const TONES = { link: "warn", session: "good", token: "none" };

const named = ({ userId, kind }) => `${kind} of ${nameOf(userId)}`;

function fillCredential(credential, slots, text, button) {
  const { kind, userId, can, sentTo, isCurrent } = credential;
  text({
    user: nameOf(userId),
    sentTo: sentTo && `sent to ${sentTo}`,
    can: can.includes("all") ? "everything" : can.join(", "),
  });
  badge(slots.kind, isCurrent ? "this session" : kind, TONES[kind]);
  stamp(slots.made, credential.createdAt);
  stamp(slots.ends, credential.expiresAt);
  // The button in the head of the page ends it.
  button("end-credential").hidden = isCurrent;
}

const acts = {
  "end-credential"(id) {
    const credential = view.records.find(({ credentialId }) => credentialId === id);
    const text = {
      link: "The link no longer opens a session.",
      session: "Whoever uses it is signed out at once.",
      token: "Programs that use it are refused at once.",
    }[credential.kind];
    const end = () => remove("/credentials", { credentialId: id });
    return surely(`End the ${named(credential)}?`, text, "End", end, `The ${named(credential)} was ended.`, { grave: true });
  },
};

const view = add({
  name: "sessions", title: "Sessions", id: "credentialId", label: named, fill: fillCredential, fetch: () => get("/credentials"), acts,
  empty: "Nobody has access at the moment.",
  body: `<p class="hint">What gives access to these settings: sessions of browsers, tokens of programs, and links that were not used yet.</p>
    <state>${table("sessions", "session-row", ["Who", "Kind", "Permits", "Made", "Ends", ACTIONS])}`,
  outside: ROW,
});
