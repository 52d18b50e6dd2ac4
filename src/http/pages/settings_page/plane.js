// Requests to the settings plane (/settings/v1), and what the page knows of the session.

import { t } from "./texts.js";

const PLANE = "/settings/v1";

// `session`: as the plane describes it; undefined without one. `names`: of users by `userId`. `accounts`: the channel accounts. `scopes` and
// `kinds`: every scope and every kind of event, as the plane's OpenAPI document lists them.
export const known = { session: undefined, names: new Map(), accounts: [], scopes: [], kinds: [] };

// The names of users by `userId`, from the seats.
export const namesOf = (seats) => new Map(seats.filter((seat) => seat.userId).map((seat) => [seat.userId, seat.name ?? seat.email ?? seat.userId]));

export const nameOf = (user) => known.names.get(user) ?? user;

export function accountText(id) {
  const account = known.accounts.find((account) => account.accountId === id);
  return account ? `${account.name} (${account.channel})` : id;
}

// Called with the refusal when the user's session has ended, or the user has lost the role.
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
    // A refusal that names a field is about the request, not about the user.
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
