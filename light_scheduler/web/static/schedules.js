/**
 * The explorer: pending schedules of a tenant. Its filters are in the address, so a list can be bookmarked, shared and revisited.
 * @module
 */

import { queryString, request, schedulesPath } from "./api.js";
import { bulkActions } from "./bulk_actions.js";
import { h, refresh, replace } from "./elements.js";
import { filling } from "./filling.js";
import { count, plural, trigger } from "./format.js";
import { mayWrite } from "./definition.js";
import { parseInstant } from "./instants.js";
import { go } from "./navigation.js";
import { timeMode } from "./preferences.js";
import { tenantField } from "./tenants.js";
import {
  address,
  badge,
  choice,
  empty,
  failure,
  field,
  filterBox,
  instant,
  loading,
  table,
  userText,
} from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").Schedule} Schedule */
/** @typedef {import("./types.d.ts").SchedulePage} SchedulePage */

const LIMIT = 50;
const FILTERS = [
  "id_prefix",
  "id_contains",
  "label",
  "label_contains",
  "state",
  "target_topic",
  "partition",
  "due_from",
  "due_to",
  "sort",
];
const STATES = { "": "All", pending: "Pending", paused: "Paused", awaiting: "Awaiting completion" };
const ORDERS = { due: "Due", id: "Id" };

const COLUMNS = [
  { name: "Id", sort: "id" },
  { name: "State" },
  { name: "Next due", sort: "due" },
  { name: "Trigger" },
  { name: "Target" },
  { name: "Labels" },
  { name: "Version", number: true },
];

/**
 * @param {Context} context
 * @returns {import("./types.d.ts").View}
 */
export function schedules(context) {
  const results = h("div", {}, loading());
  const answers = h("div", {});
  const { tenant, ...asking } = asked(context);
  let searching = new AbortController();
  const show = () => {
    searching.abort();
    searching = new AbortController();
    void fillIn(results, context, AbortSignal.any([searching.signal, context.signal]));
  };
  const bulk = mayWrite(context.identity) && bulkActions(tenant, asking, answers, show, context.signal);
  show();
  return { title: "Schedules", node: h("div", {}, filters(context), answers, bulk, results) };
}

/**
 * Return the filters in the address. Tenant and order are always set.
 * @param {Context} context
 * @returns {Record<string, string> & { tenant: string, sort: string, due_from: string, due_to: string }}
 */
function asked({ query, identity }) {
  const value = (/** @type {string} */ name) => query.get(name) ?? "";
  return {
    ...Object.fromEntries(FILTERS.map((name) => [name, value(name)])),
    tenant: value("tenant") || (identity.tenants?.[0] ?? "default"),
    sort: value("sort") || "due",
    due_from: value("due_from"),
    due_to: value("due_to"),
  };
}

/** @param {Context} context */
function filters(context) {
  const { query, identity } = context;
  const { tenant, sort } = asked(context);
  const value = (/** @type {string} */ name) => query.get(name) ?? "";
  const when = { placeholder: "+2h or 2030-01-31" };
  const active = FILTERS.filter((name) => name !== "sort" && value(name)).length;
  const form = h(
    "form",
    { class: "filters", role: "search", onsubmit: search },
    tenantField(identity, tenant),
    field("Id begins with", { name: "id_prefix", value: value("id_prefix") }),
    field("Id contains", { name: "id_contains", value: value("id_contains") }),
    field("Labels", { name: "label", value: value("label"), placeholder: "team=billing" }),
    field("Label contains", { name: "label_contains", value: value("label_contains"), placeholder: "bill" }),
    field("Target topic", { name: "target_topic", value: value("target_topic") }),
    field("Partition", { name: "partition", value: value("partition"), placeholder: "light-scheduler-commands[3]" }),
    choice("State", STATES, value("state"), { name: "state" }),
    field("Due from", { name: "due_from", value: value("due_from"), ...when }),
    field("Due before", { name: "due_to", value: value("due_to"), ...when }),
    choice("Order", ORDERS, sort, { name: "sort" }),
    h("button", { class: "main" }, "Search"),
    h("a", { href: address("schedules", { tenant }) }, "Clear"),
  );
  const add = mayWrite(identity) && h("a", { class: "button", href: address("new", { tenant }) }, "New schedule");
  return h("div", { class: "search" }, filterBox(form, active), add);
}

/** @param {SubmitEvent} event */
function search(event) {
  event.preventDefault();
  const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
  const values = Object.fromEntries([...data].map(([name, value]) => [name, String(value).trim()]));
  go(address("schedules", values));
}

/**
 * @param {Element} results
 * @param {Context} context
 * @param {AbortSignal} signal ends the search
 */
async function fillIn(results, context, signal) {
  const { tenant, ...parameters } = asked(context);
  try {
    const now = Date.now();
    const times = { due_from: parseInstant(parameters.due_from, now), due_to: parseInstant(parameters.due_to, now) };
    const cursor = context.query.get("cursor");
    const ask = (/** @type {Record<string, string | number | null>} */ place) =>
      request(schedulesPath(tenant) + queryString({ ...parameters, ...times, ...place }), { signal });
    for await (const { page, requests, isFull } of filling(ask, LIMIT, cursor)) {
      refresh(results, ...isFull ? [list(page, context), pages(page, context)] : soFar(page, requests, context));
    }
  } catch (error) {
    if (!signal.aborted) replace(results, failure(error));
  }
}

/**
 * Return the rows of a page that is not full yet.
 * @param {SchedulePage} page
 * @param {number} requests
 * @param {Context} context
 */
function soFar(page, requests, context) {
  const found = page.schedules.length;
  const progress = loading(
    `Searching… ${found ? `${count(found)} found` : "No match"} so far, after ${plural(requests, "request")}.`,
  );
  return found ? [list(page, context), progress] : [progress];
}

/**
 * @param {SchedulePage} page
 * @param {Context} context
 */
function list(page, context) {
  const isFiltered = FILTERS.some((name) => name !== "sort" && context.query.get(name));
  if (page.schedules.length) return table("Schedules", columns(context), page.schedules.map(row));
  if (page.next_cursor !== null) return empty("No match so far. Not all schedules have been searched.");
  if (isFiltered) return empty("No schedule matches.");
  return empty("This tenant has no pending schedules.");
}

/**
 * Return the columns. Headings of sortable columns are links, which begin with the first page.
 * @param {Context} context
 */
function columns(context) {
  const { cursor: _, ...parameters } = Object.fromEntries(context.query);
  const { sort: order } = asked(context);
  return COLUMNS.map(({ sort, ...column }) => ({
    ...column,
    href: sort && address("schedules", { ...parameters, sort }),
    isSorted: sort === order,
  }));
}

/** @param {Schedule} schedule */
function row(schedule) {
  const { tenant, id, state, due, target, labels, version } = schedule;
  return [
    h("a", { href: address("schedule", { tenant, id }) }, userText(id)),
    badge(state),
    instant(due),
    schedule.trigger.at === undefined ? userText(trigger(schedule.trigger, timeMode(), Date.now())) : "once",
    userText(target.topic),
    Object.entries(labels).map(([name, value]) => h("span", { class: "label" }, userText(`${name}=${value}`, 60))),
    count(version),
  ];
}

/**
 * @param {SchedulePage} page
 * @param {Context} context
 */
function pages(page, context) {
  const parameters = Object.fromEntries(context.query);
  const { cursor, ...first } = parameters;
  return h(
    "p",
    { class: "pages" },
    page.total !== null && h("span", {}, plural(page.total, "schedule")),
    cursor && h("a", { href: address("schedules", first) }, "First page"),
    page.next_cursor !== null &&
      h(
        "a",
        { href: address("schedules", { ...first, cursor: page.next_cursor }) },
        page.schedules.length === LIMIT ? "Next page" : "Look further",
      ),
  );
}
