// The framework of the tabs (sections) of the settings page. Each tab has a file in `tabs`, and a line in the list `TABS` of
// `settings_page.rs`.

import { all, announce, append, one, show } from "./dom_helpers.js";
import { confirmDialog, readable } from "./dialogs.js";
import { known } from "./settings_api.js";
import { t } from "./localization.js";

export const PAGE_ROWS = 50;
const HURRIED_MILLIS = 500;

const views = {};
export const acts = { reload: () => load(here()), older: () => load(here(), false, true) };

// How many of the next refreshes use the short pause `HURRIED_MILLIS`. A change by the user sets this number: the effect of the change,
// such as a delivery, may be visible only after a moment, and is then shown soon.
let hurried = 0;
let refreshing;

// Adds a tab. The properties of `view` (a message is a text in the reader's language, see `localization.js`):
//   name: the URL fragment of the tab, and the name of the message that is the tab's heading
//   hint: the name of the message below the heading, by default `NAME-hint`
//   head: markup next to the heading
//   body: markup below the heading; it contains a `.list` of records, and `<state>` where the state of loading is shown
//   outside: markup outside the tab: templates and dialogs
//   empty: returns the name of the message that is shown if there are no records, by default `NAME-empty`
//   id: the name of the property that identifies a record
//   label: the name of the property that names a record to a screen reader, or a function that returns this text
//   fetch: fetches the records
//   more: fetches the records that are older than the record with a given `position`
//   fill: shows a record in a row (see `show` in `dom_helpers.js`)
//   acts: the functions of the tab's buttons, by the name in `data-act`
//   turn: called when the tab is shown, with the part of the URL fragment after `NAME/`, or undefined if there is no such part
//   refresh: the pause between refreshes in milliseconds; absent if the tab does not refresh itself
// A tab may show the records of only one webhook at a time. Such a tab keeps the id of the webhook in `shownOf`.
export function add(view) {
  const { name, hint = `${name}-hint`, head = "", body, outside = "" } = view;
  append(one("#page main"), `<section id="${name}" aria-labelledby="${name}-title" hidden>
    <div class="head"><h2 id="${name}-title" tabindex="-1">${t(name)}</h2>${head}</div>
    <p class="hint">${t(hint)}</p>
    ${body.replace("<state>", '<div class="state" role="status"><span></span> <button type="button" class="quiet" data-act="reload" hidden>' + t("try-again") + '</button></div>')}
    ${view.more ? `<button type="button" class="older" data-act="older" hidden>${t("older")}</button>` : ""}
  </section>`);
  append(document.body, outside);
  one("#tabs .docs").insertAdjacentHTML("beforebegin", `<a href="#${name}">${t(name)}</a>`);
  Object.assign(acts, view.acts);
  views[name] = { records: [], ...view };
  return views[name];
}

// Returns the markup of a table for the body of the tab `name`. `row`: the id of the template of a row. `columns`: the names of the
// messages that are the column headings.
export const table = (name, row, columns) => `<table role="table" aria-labelledby="${name}-title">
  <thead role="rowgroup"><tr role="row">${columns.map((column) => `<th role="columnheader" scope="col">${column === "actions" ? `<span class="unseen">${t(column)}</span>` : t(column)}</th>`).join("")}</tr></thead>
  <tbody role="rowgroup" class="list" data-row="${row}"></tbody>
</table>`;

export const here = () => {
  const name = location.hash.slice(1).split("/")[0];
  return Object.hasOwn(views, name) ? name : Object.keys(views)[0];
};

// Removes the shown records of all tabs, since the next session may be one of another store.
export function forget() {
  clearTimeout(refreshing);
  for (const view of Object.values(views)) Object.assign(view, { records: [], of: undefined });
  for (const list of all(".list")) list.replaceChildren();
}

function keepRefreshing(view) {
  if (here() !== view.name) return;
  clearTimeout(refreshing);
  if (!known.session || !view.refresh || document.hidden) return;
  refreshing = setTimeout(() => load(view.name, true), hurried > 0 ? HURRIED_MILLIS : view.refresh);
  hurried -= 1;
}

export const hurry = () => (hurried = 6);

// Fetches the records of a tab and shows them. `older`: fetches the records that are older than the shown ones. `quietly`: shows no text
// while the records are loading.
export async function load(name, quietly = false, older = false) {
  const view = views[name];
  const section = document.getElementById(name);
  const [state, again] = [one(".state span", section), one("[data-act=reload]", section)];
  const turned = (view.turns = (view.turns ?? 0) + 1);
  if (!quietly) state.textContent = t("loading");
  again.hidden = true;
  try {
    const shown = view.records;
    const found = await (older ? view.more(shown.at(-1).position) : view.fetch());
    // The response is ignored if a newer fetch of the tab has begun, or if the session has ended.
    if (turned !== view.turns || !known.session) return;
    if (older) {
      view.records = [...shown, ...found];
    } else {
      // Older rows stay if the oldest fetched record is one of the shown rows. Otherwise records could be missing between the fetched
      // records and the older rows, so the older rows are removed.
      const reaches = view.more && found.length === PAGE_ROWS && view.of === view.shownOf ? found.at(-1).position : undefined;
      const joins = shown.some(({ position }) => position === reaches);
      view.records = joins ? [...found, ...shown.filter(({ position }) => position < reaches)] : found;
    }
    view.of = view.shownOf;
    if (view.more && (older || found.length === view.records.length)) one(".older", section).hidden = found.length < PAGE_ROWS;
    const hadFocus = one(".list", section).contains(document.activeElement);
    show(one(".list", section), view.records, view);
    // If the row that had the focus was removed, the heading gets the focus.
    if (hadFocus && document.activeElement === document.body) one("h2", section).focus();
    section.classList.toggle("empty", !view.records.length);
    state.textContent = view.records.length ? "" : t(view.empty?.() ?? `${name}-empty`);
  } catch (refused) {
    if (turned !== view.turns || !known.session) return;
    state.textContent = readable(refused.message);
    again.hidden = false;
  } finally {
    if (turned === view.turns) keepRefreshing(view);
  }
}

// Announces with `text` what the user has changed, and reloads the tab. If the row that had the focus was removed, the heading gets the
// focus.
export async function changed(text) {
  announce(text);
  hurry();
  await load(here(), true);
  if (known.session && document.activeElement === document.body) one(`#${here()} h2`).focus();
}

// Asks the user to confirm an action, performs the action, and then announces the text `done`. `more`: the last argument of
// `confirmDialog`.
export async function confirmAndPerform(question, text, yes, perform, done, more) {
  if (await confirmDialog(question, text, yes, perform, more)) await changed(done);
}

// Shows the tab that the URL fragment names.
export async function turn() {
  clearTimeout(refreshing);
  const name = here();
  for (const section of all("section")) section.hidden = section.id !== name;
  for (const link of all("nav a")) {
    if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  views[name].turn?.(location.hash.split("/")[1]);
  await load(name);
}

document.addEventListener("visibilitychange", () => {
  if (known.session && views[here()].refresh && !document.hidden) load(here(), true);
});
