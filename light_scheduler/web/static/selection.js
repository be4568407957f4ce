/**
 * Schedules that one command can change at once: those of a tenant whose id begins with a text, and that have some labels.
 * @module
 */

import { plural } from "./format.js";

/** @typedef {import("./types.d.ts").SchedulePage} SchedulePage */
/** @typedef {import("./types.d.ts").Upcoming} Upcoming */
/** @typedef {"cancel" | "pause" | "resume" | "trigger" | "reschedule"} Command */
/** @typedef {Record<string, string>} Filters id_prefix, label and the other filters of a list; empty ones are none. */
/** @typedef {{ number: number, isAll: boolean }} Counted `isAll`: no others match. */
/** @typedef {(path: string, parameters: Record<string, string | number | null>) => Promise<any>} Ask */

/** What a list can be filtered by that a command cannot. */
const ONLY_OF_LISTS = /** @type {const} */ ({
  id_contains: "Id contains",
  state: "State",
  target_topic: "Target topic",
  partition: "Partition",
  due_from: "Due from",
  due_to: "Due before",
});

const LONG_PAST = "2000-01-01T00:00:00Z";

/** Asks for what is pending, and for no interval. */
const NO_INTERVALS = { by: "minute", due_from: LONG_PAST, due_to: LONG_PAST };

const PAGE = 1_000;
const MOST_REQUESTS = 40;

/**
 * Return which filters of a list a command does not know, by the names of their fields. A resume changes paused schedules alone.
 * @param {Filters} filters
 * @param {Command} command
 */
export function unknownFilters(filters, command) {
  return Object.entries(ONLY_OF_LISTS)
    .filter(([name]) => filters[name] && !(name === "state" && command === "resume" && filters[name] === "paused"))
    .map(([_, field]) => field);
}

/**
 * Return the members of a command that select what a list shows.
 * @param {Filters} filters
 */
export function selectionOf({ id_prefix: prefix = "", label = "" }) {
  return { id: `${prefix}*`, ...(label ? { labels: label } : {}) };
}

/**
 * Return the selection in words: "of tenant shop, with ids that begin with order-".
 * @param {string} tenant
 * @param {Filters} filters
 */
export function inWords(tenant, { id_prefix: prefix, label, state }) {
  return [
    `of tenant ${tenant}`,
    prefix && `with ids that begin with ${prefix}`,
    label && `with the labels ${label}`,
    state && `that are ${state}`,
  ].filter(Boolean).join(", ");
}

/**
 * Count what is selected: all of a tenant from its counts, others page by page, as far as a few requests reach.
 * @param {Ask} ask what a tenant has at a path
 * @param {Filters} filters
 * @returns {Promise<Counted>}
 */
export async function counted(ask, { id_prefix = "", label = "", state = "" }) {
  if (!id_prefix && !label && !state) {
    /** @type {Upcoming} */
    const { pending } = await ask("upcoming", NO_INTERVALS);
    return { number: pending.reduce((sum, each) => sum + each.count, 0), isAll: true };
  }
  let number = 0;
  /** @type {string | null} */
  let cursor = null;
  for (let requests = 0; requests < MOST_REQUESTS; requests += 1) {
    /** @type {SchedulePage} */
    const page = await ask("schedules", { id_prefix, label, state, sort: "id", limit: PAGE, cursor });
    if (page.total !== null) return { number: page.total, isAll: true };
    number += page.schedules.length;
    cursor = page.next_cursor;
    if (cursor === null) return { number, isAll: true };
  }
  return { number, isAll: false };
}

/**
 * Return how many schedules there are: "1,742 schedules", "At least 40,000 schedules".
 * @param {Counted} counted
 */
export function howMany({ number, isAll }) {
  return isAll ? plural(number, "schedule") : `At least ${plural(number, "schedule")}`;
}
