// The script of the settings page: it opens and ends the session, and carries out the actions of buttons. All data comes from the settings
// API, and every change is made through it.

import { copy, readable } from "./dialogs.js";
import { all, announce, clock, one, options } from "./dom_helpers.js";
import { Refused, fetched, get, known, nameOf, post, rememberSeats, remove, whenUnwelcome } from "./settings_api.js";
import { acts, forget, here, turn } from "./tabs.js";
import { LANGUAGES, choose, language, localize, t, zone } from "./localization.js";

localize(document);
document.title = t("title");
options(one("#language"), Object.entries(LANGUAGES), language);
for (const option of all("#language option")) option.lang = option.value;
one("#tabs").addEventListener("click", () => announce(""));
one("#language").addEventListener("change", ({ target }) => {
  if (!choose(target.value)) target.value = language;
});
one("#zone").textContent = t("zone", { zone });

// The secret of a sign-in link, until the page has opened a session with it.
let link;

// Replaces the server's error message about a refused link. That message names a command, and most users who open a link cannot run
// commands on the server.
function linkRefused(refused) {
  throw refused.status === 401 ? new Refused(401, t("gate-link-refused")) : refused;
}

// Called if the server refuses a sign-in link. If the status is 401 (the link is unknown, used up or expired) and the browser still has an
// open session, the page continues with the open session.
async function without(refused) {
  const open = refused.status === 401 && (await get("/session").catch(() => undefined));
  if (!open) throw refused;
  return { ...open, note: t("still-signed-in", { reason: readable(refused.message) }) };
}

async function enter() {
  if (location.hash.startsWith("#link=")) {
    link = location.hash.slice(6);
    // The secret of the link must not stay in the address bar or in the browser's history.
    history.replaceState(null, "", location.pathname);
  }
  known.session = undefined;
  forget();
  let opened;
  try {
    opened = await (link ? post("/session", { link }).catch(linkRefused).catch(without) : get("/session"));
    link = undefined;
    const [seats, channels, document] = await Promise.all([get("/users"), get("/accounts"), fetched("/settings/openapi.json")]);
    known.scopes = document.components.schemas.Scope.enum;
    known.kinds = document.components.schemas.EventKind.enum;
    known.accounts = channels;
    known.session = opened;
    rememberSeats(seats);
  } catch (refused) {
    // A user who opens the page without a link has made no mistake, so no error is shown.
    return leave(refused.status === 401 && refused.message.startsWith("there is no session") ? { status: 200, message: t("not-signed-in") } : refused);
  }
  one("#store").textContent = known.session.storeId;
  const { userId, role, expiresAt } = known.session;
  one("#who").textContent = t("who", { name: nameOf(userId), role: t(`role-${role}`), time: clock(expiresAt, { timeStyle: "short" }) });
  one("#gate").hidden = true;
  one("#page").hidden = false;
  await turn();
  announce(opened.note ?? "");
}

// Hides the tabs, and shows the gate: the part of the page that is for users who are not signed in.
function leave({ status, message }) {
  known.session = undefined;
  for (const dialog of all("dialog[open]")) dialog.close();
  one("#secret").textContent = "";
  forget();
  one("#page").hidden = true;
  announce("");
  one("#gate").hidden = false;
  one("#gate-message").textContent = readable(message);
  one("#gate-message").classList.toggle("failure", status !== 200);
  // Shows how the user gets a sign-in link: by e-mail if the server sends e-mail, else from the operator of the server.
  const [mail, help] = [document.getElementById("gate-mail"), one("#gate-help")];
  help.hidden = true;
  (mail ?? help).hidden = ![200, 401].includes(status);
  const settled = [200, 401, 403].includes(status);
  one("#gate-again").hidden = settled;
  if (settled) link = undefined;
  one("#gate h1").focus();
}

whenUnwelcome(leave);

Object.assign(acts, {
  copy,
  close: (_, button) => button.closest("dialog").close(),
  async "sign-out"() {
    await remove("/session");
    leave({ status: 200, message: t("signed-out") });
  },
});

document.addEventListener("click", async ({ target }) => {
  const button = target.closest("[data-act]");
  if (!button) return;
  try {
    await acts[button.dataset.act](button.closest("[data-id]")?.dataset.id, button);
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    if (known.session) announce(readable(refused.message));
  }
});

addEventListener("hashchange", async () => {
  if (location.hash.startsWith("#link=")) return enter();
  if (!known.session) return;
  await turn();
  scrollTo(0, 0);
  one(`#${here()} h2`).focus();
});

one("#gate-again").addEventListener("click", enter);

// The page contains this form only if the server sends e-mail.
document.getElementById("gate-mail")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { email } = event.target.elements;
  const message = one("#gate-message");
  const button = one("button", event.target);
  button.disabled = true;
  try {
    await post("/session/link", { email: email.value });
    message.classList.remove("failure");
    message.textContent = t("gate-sent", { email: email.value });
  } catch (refused) {
    message.classList.add("failure");
    message.textContent = readable(refused.message, event.target);
  } finally {
    button.disabled = false;
  }
});

// Loads the scripts of the tabs, in the order of the navigation.
for (const { href } of all("link[rel=modulepreload]")) await import(href);
await enter();
