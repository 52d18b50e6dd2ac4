// Client of the settings API (/settings/v1), and the data that the page keeps during a session.

import { t } from "./texts.js";

const PLANE = "/settings/v1";

// The data of the session. `session`: as the settings API describes it; undefined without a session. `names`: names of users by `userId`.
// `owner`: the name of the store's oldest owner. `accounts`: the channel accounts. `scopes` and `kinds`: every scope and every kind of
// event, as the OpenAPI document of the settings API lists them.
export const known = { session: undefined, names: new Map(), owner: "", accounts: [], scopes: [], kinds: [] };

// Returns the name of each user by `userId`, or the e-mail address of a user without a name. `seats` are the people who may sign in; an
// invited person has no `userId` yet.
const namesOf = (seats) => new Map(seats.filter((seat) => seat.userId).map((seat) => [seat.userId, seat.name ?? seat.email ?? seat.userId]));

// Keeps what the page shows of the seats: the names of the users, and the store's oldest owner. The settings API lists the oldest seat first.
export function rememberSeats(seats) {
  known.names = namesOf(seats);
  known.owner = nameOf(seats.find((seat) => seat.userId && seat.roleKind === "owner")?.userId) ?? "";
}

export const nameOf = (user) => known.names.get(user) ?? user;

export function accountText(id) {
  const account = known.accounts.find((account) => account.accountId === id);
  return account ? `${account.name} (${account.channel})` : id;
}

// Called with the error of a request that was refused because the session has ended or the user is no longer an owner or admin.
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
    // An error that names a field is about the request, not about the user's session.
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
