// The tab of sessions, tokens, and sign-in links that were not used yet.

import { add, confirmAndPerform, table } from "../tabs.js";
import { badge, stamp } from "../dom_helpers.js";
import { get, nameOf, remove } from "../settings_api.js";
import { t } from "../localization.js";

const ROW = `<template id="session-row"><tr role="row">
  <td role="cell" data-label="${t("session-who")}"><strong data-slot="user"></strong> <small data-slot="sentTo"></small></td>
  <td role="cell" data-label="${t("session-kind")}"><span class="badge" data-slot="kind"></span></td>
  <td role="cell" data-label="${t("session-permits")}" data-slot="can"></td>
  <td role="cell" data-label="${t("session-made")}"><time data-slot="made" data-time="medium"></time></td>
  <td role="cell" data-label="${t("session-ends")}"><time data-slot="ends" data-time="medium"></time></td>
  <td role="cell" class="actions"><button type="button" class="quiet danger" data-act="end-credential">${t("end")}</button></td>
</tr></template>`;

const TONES = { link: "warn", session: "good", token: "none" };

const named = ({ userId, kind }) => t(`credential-of-${kind}`, { name: nameOf(userId) });

function fillCredential(credential, slots, text, button) {
  const { kind, userId, can, sentTo, isCurrent } = credential;
  text({
    user: nameOf(userId),
    sentTo: sentTo && t("session-sent-to", { email: sentTo }),
    can: can.includes("all") ? t("session-everything") : can.join(", "),
  });
  badge(slots.kind, t(isCurrent ? "session-this" : `credential-${kind}`), TONES[kind]);
  stamp(slots.made, credential.createdAt);
  stamp(slots.ends, credential.expiresAt);
  // The current session has no button here: the user ends it with the button in the head of the page.
  button("end-credential").hidden = isCurrent;
}

const acts = {
  "end-credential"(id) {
    const found = view.records.find(({ credentialId }) => credentialId === id);
    const values = { credential: named(found) };
    const perform = () => remove("/credentials", { credentialId: id });
    return confirmAndPerform(t("credential-end", values), t(`credential-end-${found.kind}`), t("end"), perform, t("credential-ended", values), { grave: true });
  },
};

const view = add({
  name: "sessions", id: "credentialId", label: named, fill: fillCredential, fetch: () => get("/credentials"), acts,
  body: `<state>${table("sessions", "session-row", ["session-who", "session-kind", "session-permits", "session-made", "session-ends", "actions"])}`,
  outside: ROW,
});
