// The tab of the seats of the store: a list of users and invited people, with buttons to add a user, to give a user another role, and to
// remove a seat.

import { add, changed, table } from "../tabs.js";
import { confirmDialog, openDialog, readable } from "../dialogs.js";
import { announce, badge, one, options } from "../dom_helpers.js";
import { get, known, post, put, rememberSeats, remove } from "../settings_api.js";
import { t } from "../localization.js";

const ROLES = ["owner", "admin", "agent"];

const ROW = `<template id="seat-row"><tr role="row">
  <td role="cell" data-label="${t("name")}"><strong data-slot="name"></strong> <small data-slot="email"></small></td>
  <td role="cell" data-label="${t("team-role")}"><span data-slot="role"></span> <small data-slot="kind"></small></td>
  <td role="cell" data-label="${t("status")}"><span class="badge" data-slot="status"></span></td>
  <td role="cell" data-label="${t("team-user-id")}"><code data-slot="userId"></code></td>
  <td role="cell" class="actions">
    <button type="button" class="quiet" data-act="send-link">${t("team-send-link")}</button>
    <button type="button" class="quiet" data-act="set-role">${t("team-set-role")}</button>
    <button type="button" class="quiet danger" data-act="remove-seat">${t("remove")}</button>
  </td>
</tr></template>`;

const DIALOG = `<dialog id="seat-dialog" aria-labelledby="seat-dialog-title"><form method="dialog">
  <h2 id="seat-dialog-title"></h2>
  <div class="group" id="seat-person">
    <label>${t("name")} <input name="name" required maxlength="100" autocomplete="off" autofocus></label>
    <label>${t("gate-email")} <input name="email" type="email" required maxlength="254" autocomplete="off"></label>
  </div>
  <label>${t("team-role")} <select name="role"></select></label>
  <p class="hint">${t("team-role-hint")}</p>
  <p class="failure" role="alert"></p>
  <p class="buttons"><button type="button" data-act="close">${t("cancel")}</button> <button class="main">${t("save")}</button></p>
</form></dialog>`;

// Whether the server sends sign-in links by e-mail. If it does, the page contains a form in which a user requests such a link.
const SENDS_MAIL = Boolean(document.getElementById("gate-mail"));

const mayUseThePage = (seat) => Boolean(seat.userId) && ["owner", "admin"].includes(seat.roleKind);
const sendLink = (email) => post("/session/link", { email });
const nameOfSeat = (seat) => seat.name ?? seat.email ?? seat.userId ?? seat.id;
const seat = (id) => view.records.find((seat) => seat.id === id);

// Returns the kind of a seat's role in parentheses, such as `(admin)`. Returns an empty text if the kind is not known, or if the role has
// the same name as its kind.
function kindOf({ role, roleKind }) {
  if (!roleKind || role.toLowerCase() === t(`role-${roleKind}`)) return "";
  return `(${t(`role-${roleKind}`)})`;
}

function fillSeat(seat, slots, text, button) {
  const named = nameOfSeat(seat);
  text({ name: named, email: seat.email === named ? "" : seat.email, role: seat.role, kind: kindOf(seat), userId: seat.userId });
  badge(slots.status, t(seat.userId ? "team-member" : "team-invited"), seat.userId ? "good" : "warn");
  // Users cannot change or remove their own seats, and an admin cannot change or remove the seat of an owner.
  const fixed = seat.userId === known.session.userId || (seat.roleKind === "owner" && known.session.role !== "owner");
  for (const act of ["set-role", "remove-seat"]) button(act).hidden = fixed;
  button("send-link").hidden = !SENDS_MAIL || !mayUseThePage(seat) || !seat.email || seat.userId === known.session.userId;
}

async function load() {
  const seats = await get("/users");
  rememberSeats(seats);
  one("#team-command code").textContent = `counterpart settings link --store ${known.session.storeId} --user USERID --public-url ${location.origin}`;
  one("#team-command").hidden = SENDS_MAIL;
  return seats;
}

// Opens the form that adds a user or, if `former` is given, the form that changes the role of the seat `former`. Only an owner can give a
// user the role of an owner.
function seatForm(title, former, perform) {
  const dialog = one("#seat-dialog");
  const form = one("form", dialog);
  form.reset();
  one("#seat-dialog-title").textContent = title;
  one("#seat-person").hidden = Boolean(former);
  for (const name of ["name", "email"]) form.elements[name].disabled = Boolean(former);
  const roles = known.session.role === "owner" ? ROLES : ROLES.slice(1);
  options(form.elements.role, roles.map((role) => [role, t(`role-${role}`)]), former?.roleKind ?? "agent");
  return openDialog(dialog, (data) => perform(Object.fromEntries(data)));
}

const acts = {
  async "add-seat"() {
    const added = await seatForm(t("team-add"), undefined, (user) => post("/users", user));
    if (!added) return;
    const said = { name: added.name, email: added.email, userId: added.userId };
    if (!mayUseThePage(added)) return changed(t("team-added-agent", said));
    if (!SENDS_MAIL) return changed(t("team-added-link", said));
    const failure = await sendLink(added.email).then(() => undefined, (refused) => refused);
    await changed(failure ? t("team-added-no-mail", { ...said, reason: readable(failure.message) }) : t("team-added-mail", said));
  },
  async "send-link"(id) {
    const { email } = seat(id);
    await sendLink(email);
    announce(t("team-link-sent", { email }));
  },
  async "set-role"(id) {
    const name = nameOfSeat(seat(id));
    const set = await seatForm(t("team-role-of", { name }), seat(id), ({ role }) => put("/users/role", { id, role }));
    if (set) await changed(t("team-role-set", { name, role: t(`role-${set.roleKind}`) }));
  },
  async "remove-seat"(id) {
    const name = nameOfSeat(seat(id));
    const done = await confirmDialog(t("team-remove", { name }), t("team-remove-text"), t("remove"), () => remove("/users", { id }), { grave: true });
    if (done) await changed(t("team-removed", { name, count: done.unassignedTickets }));
  },
};

const view = add({
  name: "team", id: "id", label: nameOfSeat, fill: fillSeat, fetch: load, acts,
  hint: SENDS_MAIL ? "team-hint-mail" : "team-hint-link",
  head: `<button type="button" class="main" data-act="add-seat">${t("team-add")}</button>`,
  body: `<p class="hint" id="team-command" hidden><code></code></p>
    <state>${table("team", "seat-row", ["name", "team-role", "status", "team-user-id", "actions"])}`,
  outside: ROW + DIALOG,
});
