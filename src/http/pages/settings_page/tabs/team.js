// The tab of the seats of the store.

import { add, changed, table, ACTIONS } from "../sections.js";
import { sure } from "../dialogs.js";
import { badge } from "../elements.js";
import { get, known, namesOf, remove } from "../plane.js";

const ROW = `<template id="seat-row"><tr role="row">
  <td role="cell" data-label="Name"><strong data-slot="name"></strong> <small data-slot="email"></small></td>
  <td role="cell" data-label="Role" data-slot="role"></td>
  <td role="cell" data-label="Status"><span class="badge" data-slot="status"></span></td>
  <td role="cell" data-label="User id"><code data-slot="userId"></code></td>
  <td role="cell" class="actions"><button type="button" class="quiet danger" data-act="remove-seat">Remove</button></td>
</tr></template>`;

// The form is there if the server sends links by e-mail.
const WAY_IN = document.getElementById("gate-mail")
  ? "a link that is sent to the e-mail address of the seat. It is asked for at the address of this page."
  : "a link that the operator of the server prints: <code>counterpart settings link --store STORE --user USERID</code>";

const nameOfSeat = (seat) => seat.name ?? seat.email ?? seat.userId ?? seat.id;

function fillSeat(seat, slots, text, button) {
  const named = nameOfSeat(seat);
  text({ name: named, email: seat.email === named ? "" : seat.email, role: seat.role, userId: seat.userId });
  badge(slots.status, seat.userId ? "member" : "invited", seat.userId ? "good" : "warn");
  // Users who remove their own seat lock themselves out.
  button("remove-seat").hidden = seat.userId === known.session.userId;
}

async function load() {
  const seats = await get("/users");
  known.names = namesOf(seats);
  return seats;
}

const acts = {
  async "remove-seat"(id) {
    const seat = view.records.find((seat) => seat.id === id);
    const named = nameOfSeat(seat);
    const text = "The seat is removed at once and permanently. Tickets lose this assignee, sessions and tokens end, and API keys in this name "
      + "act in the name of the store's oldest owner from then on.";
    const done = await sure(`Remove ${named}?`, text, "Remove", () => remove("/users", { id }), { grave: true });
    if (done) await changed(`${named} was removed. Tickets without an assignee now: ${done.unassignedTickets}.`);
  },
};

const view = add({
  name: "team", title: "Team", id: "id", label: nameOfSeat, fill: fillSeat, fetch: load, acts, empty: "There are no seats yet.",
  body: `<p class="hint">Everyone with a seat. A colleague whose role is of the kind owner or admin may use this page, and signs in with ${WAY_IN}</p>
    <state>${table("team", "seat-row", ["Name", "Role", "Status", "User id", ACTIONS])}`,
  outside: ROW,
});
