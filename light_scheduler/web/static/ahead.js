/**
 * The scope of a count of upcoming schedules: one tenant, or all tenants, optionally with one target topic or partition. Pure.
 * @module
 */

import { parametersOf } from "./zoom.js";

/** @typedef {import("./types.d.ts").Upcoming} Upcoming */
/** @typedef {import("./types.d.ts").UpcomingGroups} UpcomingGroups */
/** @typedef {Record<string, string> & { tenant?: string, target?: string, partition?: string }} Scope all of its members empty: everything */
/** @typedef {"tenant" | "target" | "partition"} Group */

/** What schedules of all tenants can be grouped by. */
export const GROUPS = { tenant: "Tenant", target: "Target topic", partition: "Partition" };

/**
 * Return the path of the request that counts a scope, and its parameters without the time range.
 * @param {Scope} scope
 * @param {Group} [group]
 * @param {number} [top] how many groups are named
 * @returns {[string, Record<string, string | number | undefined>]}
 */
export function question({ tenant, target, partition }, group, top) {
  if (tenant) return [`/api/v1/tenants/${encodeURIComponent(tenant)}/upcoming`, {}];
  return ["/api/v1/upcoming", { group, top, target_topic: target, partition }];
}

/**
 * Return the counts in an answer, of all groups.
 * @param {Upcoming | UpcomingGroups} answer
 * @returns {{ due_from: number, count: number }[]}
 */
export function countsOf(answer) {
  return "groups" in answer ? answer.groups.flatMap(({ counts }) => counts) : answer.counts;
}

/**
 * Return the number of pending schedules, whenever they are due.
 * @param {Upcoming | UpcomingGroups} answer
 */
export function pendingOf(answer) {
  if ("groups" in answer) return answer.groups.reduce((sum, { pending }) => sum + pending, 0);
  return answer.pending.reduce((sum, { count }) => sum + count, 0);
}

/**
 * Return the view of a group's schedules, with its parameters.
 * @param {Group} group
 * @param {string} name
 * @param {Scope} scope
 * @param {import("./zoom.js").Range} range
 * @returns {[string, Record<string, string | number | undefined>]}
 */
export function intoGroup(group, name, scope, { by, from, to }) {
  if (group !== "tenant") return ["upcoming", { ...scope, [group]: name, ...parametersOf({ by, from, to }) }];
  const { target: target_topic, partition } = scope;
  return ["schedules", { tenant: name, target_topic, partition, due_from: from, due_to: to, sort: "due" }];
}

/**
 * Return names of groups in order: partitions by topic, then number, others as text.
 * @param {Group} group
 * @param {string[]} names
 */
export function inOrder(group, names) {
  if (group !== "partition") return [...names].sort();
  return names
    .map((name) => ({
      name,
      topic: name.slice(0, name.lastIndexOf("[")),
      number: parseInt(name.slice(name.lastIndexOf("[") + 1)),
    }))
    .sort((a, b) => a.topic === b.topic ? a.number - b.number : a.topic < b.topic ? -1 : 1)
    .map(({ name }) => name);
}
