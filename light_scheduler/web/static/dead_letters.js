/**
 * The dead letters: rejected commands, and firings that could not be delivered.
 * @module
 */

import { queryString, request } from "./api.js";
import { mayWrite } from "./definition.js";
import { h, replace } from "./elements.js";
import { go } from "./navigation.js";
import { redriveAll } from "./redrive.js";
import { address, choice, empty, failure, field, filterBox, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {{ dead_letters: import("./types.d.ts").DeadLetter[], searched_from: number, next_cursor: string | null }} Page */

const LIMIT = 50;
const MOST_REQUESTS = 25;
const FILTERS = ["tenant", "id", "cause"];
const CAUSES = {
  "": "All",
  rejected: "Rejected command",
  refused: "Refused by the target",
  missed: "Missed",
  unacknowledged: "Not completed",
};
const COLUMNS = [{ name: "When" }, { name: "Cause" }, { name: "Tenant" }, { name: "Schedule" }, { name: "Target" }, {
  name: "Reason",
}];

/**
 * @param {Context} context
 * @returns {import("./types.d.ts").View}
 */
export function deadLetters(context) {
  const answers = h("div", {});
  const results = h("div", {}, loading("Searching…"));
  void fillIn(results, answers, context);
  return { title: "Dead letters", node: h("div", {}, filters(context), answers, results) };
}

/** @param {Context} context */
function filters({ query }) {
  const value = (/** @type {string} */ name) => query.get(name) ?? "";
  const form = h(
    "form",
    { class: "filters", role: "search", onsubmit: search },
    field("Tenant", { name: "tenant", value: value("tenant") }),
    field("Schedule id", { name: "id", value: value("id") }),
    choice("Cause", CAUSES, value("cause"), { name: "cause" }),
    h("button", { class: "main" }, "Search"),
    h("a", { href: address("dead-letters") }, "Clear"),
  );
  return filterBox(form, FILTERS.filter((name) => value(name)).length);
}

/** @param {SubmitEvent} event */
function search(event) {
  event.preventDefault();
  const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
  go(address("dead-letters", Object.fromEntries([...data].map(([name, value]) => [name, String(value)]))));
}

/**
 * @param {Element} results
 * @param {Element} answers
 * @param {Context} context
 */
async function fillIn(results, answers, { identity, query, signal }) {
  const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name)]));
  try {
    const page = await firstLetters({ ...filters, limit: LIMIT, cursor: query.get("cursor") }, signal);
    const { dead_letters: letters } = page;
    const redrive = mayWrite(identity) && letters.length > 0 &&
      h("div", { class: "row actions" }, redriveAll(letters, answers, signal));
    replace(results, redrive, list(page), pages(page, filters));
  } catch (error) {
    if (!signal.aborted) replace(results, failure(error));
  }
}

/**
 * The topic has no index: follow the cursor until there is a letter, for a limited time.
 * @param {Record<string, string | number | null>} parameters
 * @param {AbortSignal} signal
 * @returns {Promise<Page>}
 */
async function firstLetters(parameters, signal) {
  for (let requests = 1;; requests += 1) {
    /** @type {Page} */
    const page = await request(`/api/v1/dead-letters${queryString(parameters)}`, { signal });
    if (page.dead_letters.length || page.next_cursor === null || requests === MOST_REQUESTS) return page;
    parameters = { ...parameters, cursor: page.next_cursor };
  }
}

/** @param {Page} page */
function list(page) {
  if (!page.dead_letters.length) {
    return empty(page.next_cursor === null ? "No dead letters." : "None so far. There is more to search.");
  }
  return table(
    "Dead letters",
    COLUMNS,
    page.dead_letters.map(({ letter, at, cause, tenant, id, target_topic: target, field, reason, lacks }) => [
      h("a", { href: address("dead-letter", { letter }) }, instant(at)),
      causeName(cause),
      userText(tenant),
      id === null ? "–" : userText(id),
      target === null ? "–" : userText(target),
      [
        userText(field === null ? reason : `${field}: ${reason}`, 300),
        lacks === null ? null : h("p", { class: "note" }, "Left out: ", userText(lacks)),
      ],
    ]),
  );
}

/**
 * Return a cause in the filter's notation.
 * @param {string} cause
 */
export function causeName(cause) {
  return Object.hasOwn(CAUSES, cause) ? CAUSES[/** @type {keyof typeof CAUSES} */ (cause)] : cause;
}

/**
 * @param {Page} page
 * @param {Record<string, string | null>} filters
 */
function pages(page, filters) {
  return h(
    "p",
    { class: "pages" },
    h(
      "span",
      { class: "note" },
      "Searched back to ",
      page.searched_from ? instant(page.searched_from) : "the beginning",
    ),
    page.next_cursor !== null &&
      h("a", { href: address("dead-letters", { ...filters, cursor: page.next_cursor }) }, "Search further back"),
  );
}
