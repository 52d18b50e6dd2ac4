// The tab of the seats of the store: a list of teammates and invitations, with a button to remove each.

import { add, changed, table } from "../sections.js";
import { confirmDialog } from "../dialogs.js";
import { badge, one } from "../elements.js";
import { get, known, namesOf, remove } from "../settings_api.js";
import { t } from "../texts.js";

const ROW = `<template id="seat-row"><tr role="row">
  <td role="cell" data-label="${t("name")}"><strong data-slot="name"></strong> <small data-slot="email"></small></td>
  <td role="cell" data-label="${t("team-role")}"><span data-slot="role"></span> <small data-slot="kind"></small></td>
  <td role="cell" data-label="${t("status")}"><span class="badge" data-slot="status"></span></td>
  <td role="cell" data-label="${t("team-user-id")}"><code data-slot="userId"></code></td>
  <td role="cell" class="actions"><button type="button" class="quiet danger" data-act="remove-seat">${t("remove")}</button></td>
</tr></template>`;

// Whether the server sends links by e-mail. If it does, the sign-in page has a form that requests a link.
const SENDS_MAIL = Boolean(document.getElementById("gate-mail"));

const nameOfSeat = (seat) => seat.name ?? seat.email ?? seat.userId ?? seat.id;

// Returns the kind of a seat's role in parentheses, such as `(admin)`, or an empty text if the role's name is the same.
function kindOf({ role, roleKind }) {
  if (!roleKind || role.toLowerCase() === t(`role-${roleKind}`)) return "";
  return `(${t(`role-${roleKind}`)})`;
}

function fillSeat(seat, slots, text, button) {
  const named = nameOfSeat(seat);
  text({ name: named, email: seat.email === named ? "" : seat.email, role: seat.role, kind: kindOf(seat), userId: seat.userId });
  badge(slots.status, t(seat.userId ? "team-member" : "team-invited"), seat.userId ? "good" : "warn");
  // A seat has no button for removal if it is the user's own, or if it is an owner's and the user is an admin.
  button("remove-seat").hidden = seat.userId === known.session.userId || (seat.roleKind === "owner" && known.session.role !== "owner");
}

async function load() {
  const seats = await get("/users");
  known.names = namesOf(seats);
  one("#team-command code").textContent = `counterpart settings link --store ${known.session.storeId} --user USERID --public-url ${location.origin}`;
  one("#team-command").hidden = SENDS_MAIL;
  return seats;
}

const acts = {
  async "remove-seat"(id) {
    const seat = view.records.find((seat) => seat.id === id);
    const name = nameOfSeat(seat);
    const done = await confirmDialog(t("team-remove", { name }), t("team-remove-text"), t("remove"), () => remove("/users", { id }), { grave: true });
    if (done) await changed(t("team-removed", { name, count: done.unassignedTickets }));
  },
};

const view = add({
  name: "team", id: "id", label: nameOfSeat, fill: fillSeat, fetch: load, acts,
  hint: SENDS_MAIL ? "team-hint-mail" : "team-hint-link",
  body: `<p class="hint" id="team-command" hidden><code></code></p>
    <state>${table("team", "seat-row", ["name", "team-role", "status", "team-user-id", "actions"])}`,
  outside: ROW,
});
