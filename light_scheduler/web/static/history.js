/**
 * What happened to a schedule, as far back as was searched: the topic has no index, so the search goes on when it is asked to.
 * @module
 */

import { queryString, request, schedulesPath } from "./api.js";
import { h, replace } from "./elements.js";
import { count } from "./format.js";
import { button, empty, failure, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").HistoryEvent} HistoryEvent */
/** @typedef {import("./types.d.ts").HistoryPage} HistoryPage */
/** @typedef {{ events: HistoryEvent[], since: number, from: number, cursor: string | null }} Found
 *   `since` is where the search ends, `from` how far it has come; `cursor` goes on, null: it is at its end. */

const PAGE = 50;

/** Requests until a user is asked whether to look further back. */
const MOST_REQUESTS = 10;

const COLUMNS = [
  { name: "When" },
  { name: "Event" },
  { name: "Due" },
  { name: "Version", number: true },
  { name: "By" },
  { name: "Reason" },
];

/**
 * Show the history of a schedule since an instant, with a button that looks further back.
 * @param {Element} element
 * @param {{ tenant: string, id: string }} schedule
 * @param {number} since UTC epoch ms
 * @param {AbortSignal} signal
 */
export async function showHistory(element, { tenant, id }, since, signal) {
  const path = `${schedulesPath(tenant, id)}/history`;
  const ask = (/** @type {Record<string, string | number>} */ parameters) =>
    request(path + queryString({ limit: PAGE, ...parameters }), { signal });

  /**
   * @param {() => Promise<Found>} search
   * @param {Found} [known] what is shown already
   */
  async function show(search, known) {
    replace(element, loading("Searching the history…"));
    try {
      replace(element, ...shown(await search()));
    } catch (error) {
      if (!signal.aborted) replace(element, ...(known ? shown(known) : []), failure(error));
    }
  }

  /** @param {Found} found */
  function shown(found) {
    const further = () => show(() => (found.cursor === null ? searched(ask, 0, found) : more(ask, found)), found);
    return [events(found.events), end(found, () => void further())];
  }

  await show(() => searched(ask, since));
}

/**
 * Search from the end of the topic back to `since`: through all of what is known already, however many requests that takes, and on until
 * there are more events.
 * @param {(parameters: Record<string, string | number>) => Promise<HistoryPage>} ask
 * @param {number} since
 * @param {{ events: HistoryEvent[], from: number }} [known]
 * @returns {Promise<Found>}
 */
export async function searched(ask, since, known = { events: [], from: Infinity }) {
  const page = await ask({ since: new Date(since).toISOString() });
  /** @type {Found} */
  let found = { events: page.events, since, from: page.searched_from, cursor: page.next_cursor };
  while (found.cursor !== null && found.from > known.from) found = await continued(ask, found, found.cursor);
  return more(ask, found, known.events.length);
}

/**
 * Go on with a search until there are more events than a number, as far as a few requests reach.
 * @param {(parameters: Record<string, string | number>) => Promise<HistoryPage>} ask
 * @param {Found} found
 * @param {number} [known]
 * @returns {Promise<Found>}
 */
export async function more(ask, found, known = found.events.length) {
  for (let requests = 0; requests < MOST_REQUESTS; requests += 1) {
    if (found.cursor === null || found.events.length > known) break;
    found = await continued(ask, found, found.cursor);
  }
  return found;
}

/**
 * @param {(parameters: Record<string, string | number>) => Promise<HistoryPage>} ask
 * @param {Found} found
 * @param {string} cursor
 * @returns {Promise<Found>}
 */
async function continued(ask, found, cursor) {
  const page = await ask({ cursor });
  const events = [...found.events, ...page.events];
  return { ...found, events, from: page.searched_from, cursor: page.next_cursor };
}

/** @param {HistoryEvent[]} events */
function events(events) {
  if (!events.length) return empty("No events found so far.");
  return table(
    "History",
    COLUMNS,
    events.map(({ at, event, due, version, attempt, by, address, reason }) => [
      instant(at),
      `${event}${attempt !== null && attempt > 1 ? `, attempt ${attempt}` : ""}`,
      instant(due),
      count(version),
      by ? [userText(by), address ? ` (${address})` : ""] : "–",
      reason ? userText(reason, 300) : "–",
    ]),
  );
}

/**
 * @param {Found} found
 * @param {() => void} further
 */
function end({ cursor, since, from }, further) {
  if (cursor === null && since === 0) return h("p", { class: "note" }, "Searched back to the beginning.");
  return h(
    "p",
    { class: "pages" },
    h("span", { class: "note" }, "Searched back to ", instant(from)),
    button("Look further back", further),
  );
}
