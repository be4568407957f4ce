/**
 * What a count of schedules ahead is of: a tenant, or all tenants and maybe one target topic or partition. Pure.
 * @module
 */

/** @typedef {import("./types.d.ts").Upcoming} Upcoming */
/** @typedef {import("./types.d.ts").UpcomingGroups} UpcomingGroups */
/** @typedef {Record<string, string> & { tenant?: string, target?: string, partition?: string }} Scope all of its members empty: everything */
/** @typedef {"tenant" | "target" | "partition"} Group */

/** What schedules of all tenants can be grouped by. */
export const GROUPS = { tenant: "Tenant", target: "Target topic", partition: "Partition" };

/**
 * Return the path that counts what is ahead in a scope, and its parameters but for the time.
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
 * Return the counts of an answer, of whatever group.
 * @param {Upcoming | UpcomingGroups} answer
 * @returns {{ due_from: number, count: number }[]}
 */
export function countsOf(answer) {
  return "groups" in answer ? answer.groups.flatMap(({ counts }) => counts) : answer.counts;
}

/**
 * Return how many schedules are pending, whenever they are due.
 * @param {Upcoming | UpcomingGroups} answer
 */
export function pendingOf(answer) {
  if ("groups" in answer) return answer.groups.reduce((sum, { pending }) => sum + pending, 0);
  return answer.pending.reduce((sum, { count }) => sum + count, 0);
}
