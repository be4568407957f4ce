/**
 * A page of a list, filled by consecutive requests: if few schedules match, a single request finds few or none.
 * @module
 */

/** @typedef {import("./types.d.ts").Schedule} Schedule */
/** @typedef {import("./types.d.ts").SchedulePage} SchedulePage */
/** @typedef {(place: { limit: number, cursor: string | null }) => Promise<SchedulePage>} Ask */

const MOST_REQUESTS = 100;

/**
 * Yield a page after each request, with everything found so far. Ends when it is full, nothing is left, or the limit of requests is
 * reached.
 * @param {Ask} ask
 * @param {number} limit
 * @param {string | null} begin the cursor that the page begins at
 */
export async function* filling(ask, limit, begin) {
  /** @type {Schedule[]} */
  const schedules = [];
  let cursor = begin;
  for (let requests = 1;; requests += 1) {
    const { next_cursor: next, schedules: found, total: all } = await ask({ limit: limit - schedules.length, cursor });
    schedules.push(...found);
    const total = begin === null && next === null ? schedules.length : all;
    const isFull = next === null || schedules.length >= limit || requests === MOST_REQUESTS;
    yield { page: { schedules, next_cursor: next, total }, requests, isFull };
    if (isFull) return;
    cursor = next;
  }
}
