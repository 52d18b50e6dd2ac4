// Client of the settings API (/settings/v1), and the data that the page keeps during a session.

import { t } from "./localization.js";

const PLANE = "/settings/v1";

// The data of the session. `session`: the session as the operation GET /session returns it, or undefined if the user is not signed in.
// `names`: names of users by `userId`. `owner`: the name of the store's oldest owner. `accounts`: the channel accounts. `scopes` and
// `kinds`: every scope and every kind of event, as the OpenAPI document of the settings API lists them.
export const known = { session: undefined, names: new Map(), owner: "", accounts: [], scopes: [], kinds: [] };

// Returns a map from the `userId` of each user to the text that the page shows for the user: the name, or else the e-mail address, or else
// the `userId`. `seats`: the users of the store, and the invited people, who have no `userId` yet.
const namesOf = (seats) => new Map(seats.filter((seat) => seat.userId).map((seat) => [seat.userId, seat.name ?? seat.email ?? seat.userId]));

// Stores the names of the users, and the name of the store's oldest owner: the first owner in `seats`, since the settings API lists the
// oldest seat first.
export function rememberSeats(seats) {
  known.names = namesOf(seats);
  known.owner = nameOf(seats.find((seat) => seat.userId && seat.roleKind === "owner")?.userId) ?? "";
}

export const nameOf = (user) => known.names.get(user) ?? user;

export function accountText(id) {
  const account = known.accounts.find((account) => account.accountId === id);
  return account ? `${account.name} (${account.channel})` : id;
}

// The function that is called if the server refuses a request because the session has ended, or because the user is no longer an owner or
// admin. Its argument is the error.
let unwelcome = () => {};
export const whenUnwelcome = (call) => (unwelcome = call);

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function fetched(address, request) {
  let response;
  try {
    response = await fetch(address, { cache: "no-store", ...request });
  } catch {
    throw new Refused(0, t("unreachable"));
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw new Refused(response.status, answer.error?.message ?? t("answered", { status: response.status }));
}

async function ask(method, path, { query = {}, body } = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const json = body && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const asking = known.session;
  try {
    return (await fetched(`${PLANE}${path}${given.length ? "?" : ""}${new URLSearchParams(given)}`, { method, ...json })).data;
  } catch (refused) {
    // An error message that begins with a property name in backquotes, such as `body.userId`, is about the content of the request. The
    // session has not ended then.
    const ended = [401, 403].includes(refused.status) && !refused.message.startsWith("`");
    if (asking && asking === known.session && ended) unwelcome(refused);
    throw refused;
  }
}

export const get = (path, query) => ask("GET", path, { query });
export const post = (path, body) => ask("POST", path, { body });
export const put = (path, body) => ask("PUT", path, { body });
export const patch = (path, body) => ask("PATCH", path, { body });
export const remove = (path, query) => ask("DELETE", path, { query });
