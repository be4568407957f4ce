/**
 * The events of a schedule, as far back as was searched. The topic has no index, so the user can continue the search.
 * @module
 */

import { queryString, request, schedulesPath } from "./api.js";
import { h, replace } from "./elements.js";
import { count } from "./format.js";
import { button, empty, failure, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").HistoryEvent} HistoryEvent */
/** @typedef {import("./types.d.ts").HistoryPage} HistoryPage */
/** @typedef {{ events: HistoryEvent[], from: number }} Known */
/** @typedef {Known & { since: number, cursor: string | null, known: Known }} Found
 *   `since` is where the search ends, `from` how far it has come; `cursor` goes on, null: it is at its end. `known` is what an earlier
 *   search had found: it is shown until this one has come as far. */

const PAGE = 50;

/** @type {Known} */
const NOTHING = { events: [], from: Infinity };

/** Number of requests before the user is asked whether to look further back. */
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
   * @param {(keep: (progress: Found) => void) => Promise<Found>} search
   * @param {Found} [found] what is shown already
   */
  async function show(search, found) {
    replace(element, loading("Searching the history…"));
    try {
      replace(element, ...shown(await search((progress) => found = progress)));
    } catch (error) {
      if (!signal.aborted) replace(element, ...(found ? shown(found) : []), failure(error));
    }
  }

  /** @param {Found} found */
  function shown(found) {
    return [events(shownOf(found).events), end(found, () => void show((keep) => further(ask, found, keep), found))];
  }

  await show((keep) => searched(ask, since, NOTHING, keep));
}

/**
 * Look further back. When a search has ended, another one starts at the end of the topic, without a limit.
 * @param {(parameters: Record<string, string | number>) => Promise<HistoryPage>} ask
 * @param {Found} found
 * @param {(progress: Found) => void} [keep]
 */
export function further(ask, found, keep) {
  const { events, from, cursor } = found;
  return cursor === null ? searched(ask, 0, { events, from }, keep) : more(ask, found, keep);
}

/**
 * Search from the end of the topic back to `since`, for a few requests, or until there are more events than `known`. Keeps the result of
 * each request, so that the search can continue after an error.
 * @param {(parameters: Record<string, string | number>) => Promise<HistoryPage>} ask
 * @param {number} since
 * @param {Known} [known]
 * @param {(progress: Found) => void} [keep]
 * @returns {Promise<Found>}
 */
export async function searched(ask, since, known = NOTHING, keep = () => {}) {
  const page = await ask({ since: new Date(since).toISOString() });
  const found = { events: page.events, since, from: page.searched_from, cursor: page.next_cursor, known };
  keep(found);
  return more(ask, found, keep, known.events.length);
}

/**
 * Continue a search until more than `number` events are shown, for a few requests.
 * @param {(parameters: Record<string, string | number>) => Promise<HistoryPage>} ask
 * @param {Found} found
 * @param {(progress: Found) => void} [keep]
 * @param {number} [number]
 * @returns {Promise<Found>}
 */
export async function more(ask, found, keep = () => {}, number = shownOf(found).events.length) {
  for (let requests = 0; requests < MOST_REQUESTS; requests += 1) {
    if (found.cursor === null || shownOf(found).events.length > number) break;
    found = await continued(ask, found, found.cursor);
    keep(found);
  }
  return found;
}

/**
 * Return the events to show: the previously known ones, until the search has come as far.
 * @param {Found} found
 * @returns {Known}
 */
export function shownOf(found) {
  return found.cursor !== null && found.from > found.known.from ? found.known : found;
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
 * @param {() => void} onclick
 */
function end(found, onclick) {
  const { cursor, since, from } = found;
  if (cursor === null && since === 0) return h("p", { class: "note" }, "Searched back to the beginning.");
  const shown = shownOf(found);
  return h(
    "p",
    { class: "pages" },
    h(
      "span",
      { class: "note" },
      "Searched back to ",
      instant(shown.from),
      shown !== found && [". Searching from the end again, back to ", instant(from)],
    ),
    button("Look further back", onclick),
  );
}
