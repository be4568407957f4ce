/**
 * Schedules that are changed together. One command changes schedules of a tenant by id prefix and labels; other selections are listed, and
 * changed one by one.
 * @module
 */

import { plural } from "./format.js";

/** @typedef {import("./types.d.ts").SchedulePage} SchedulePage */
/** @typedef {import("./types.d.ts").Schedule} Schedule */
/** @typedef {import("./types.d.ts").Upcoming} Upcoming */
/** @typedef {"cancel" | "pause" | "resume" | "trigger" | "reschedule"} Command */
/** @typedef {Record<string, string>} Filters id_prefix, label and the other filters of a list; empty ones are none. */
/** @typedef {{ number: number, isAll: boolean }} Counted `isAll`: no others match. */
/** @typedef {(path: string, parameters: Record<string, string | number | null>) => Promise<any>} Ask */

/** Filters of a list that a command does not have. */
const ONLY_OF_LISTS = ["id_contains", "label_contains", "state", "target_topic", "partition", "due_from", "due_to"];

const LONG_PAST = "2000-01-01T00:00:00Z";

/** Parameters for a count of pending schedules only, without intervals. */
const NO_INTERVALS = { by: "minute", due_from: LONG_PAST, due_to: LONG_PAST };

const PAGE = 1_000;
const MOST_REQUESTS = 40;

/** Maximum number of schedules changed one by one; more would take too long for a waiting user. */
export const MOST_ONE_BY_ONE = 10_000;
const MOST_SEARCHES = 400;

/**
 * Return whether one command can select what a list shows. A resume only changes paused schedules.
 * @param {Filters} filters
 * @param {Command} command
 */
export function isOneCommand(filters, command) {
  return ONLY_OF_LISTS.every((name) =>
    !filters[name] || (name === "state" && command === "resume" && filters[name] === "paused")
  );
}

/**
 * Return the members of a command for the selection of a list.
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
export function inWords(tenant, filters) {
  return [
    `of tenant ${tenant}`,
    filters.id_prefix && `with ids that begin with ${filters.id_prefix}`,
    filters.id_contains && `with ids that contain ${filters.id_contains}`,
    filters.label && `with the labels ${filters.label}`,
    filters.label_contains && `with ${filters.label_contains} in a label`,
    filters.state && `that are ${filters.state}`,
    filters.target_topic && `that go to ${filters.target_topic}`,
    filters.partition && `in partition ${filters.partition}`,
    filters.due_from && `due from ${filters.due_from}`,
    filters.due_to && `due before ${filters.due_to}`,
  ].filter(Boolean).join(", ");
}

/**
 * Count the selection: all schedules of a tenant from its counts, others page by page, for a few requests.
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
 * Find the selected schedules, each once: when ordered by due time, one that fires meanwhile is listed again.
 * @param {Ask} ask what a tenant has at a path
 * @param {Record<string, string | number | null>} parameters of a list
 * @param {(found: number) => void} tell is called after each request
 * @returns {Promise<{ found: Schedule[], isAll: boolean }>} `isAll`: no others match.
 */
export async function listed(ask, parameters, tell) {
  /** @type {Map<string, Schedule>} by their ids */
  const found = new Map();
  /** @type {string | null} */
  let cursor = null;
  for (let requests = 0; requests < MOST_SEARCHES && found.size <= MOST_ONE_BY_ONE; requests += 1) {
    /** @type {SchedulePage} */
    const page = await ask("schedules", { ...parameters, limit: PAGE, cursor });
    for (const schedule of page.schedules) found.set(schedule.id, schedule);
    tell(found.size);
    cursor = page.next_cursor;
    if (cursor === null) return { found: [...found.values()], isAll: true };
  }
  return { found: [...found.values()], isAll: false };
}

/**
 * Return a number of schedules in words: "1,742 schedules", "At least 40,000 schedules".
 * @param {Counted} counted
 */
export function howMany({ number, isAll }) {
  return isAll ? plural(number, "schedule") : `At least ${plural(number, "schedule")}`;
}
