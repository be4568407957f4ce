/**
 * Preview requests for the next firings of a pending schedule. Pure.
 * @module
 */

/** @typedef {import("./types.d.ts").Schedule} Schedule */

/** Maximum number of firings in one preview. */
const MOST_ASKED = 1_000;

/**
 * Return body and parameters of a preview that continues a series from its current position, or null if only its next firing is known.
 * `firingsOf` takes its answer. Times on the clock are counted as the scheduler does, from before jitter moved the next firing. A fixed
 * rate without a start continues from its next due time, which already includes jitter; while it is paused, from when it was accepted.
 * @param {Schedule} schedule
 * @param {number} most firings
 * @param {number} now UTC epoch ms
 */
export function previewOf(schedule, most, now) {
  const { tenant, id, trigger, due, state } = schedule;
  const left = leftOf(schedule, most);
  const isSeries = trigger.cron !== undefined || (trigger.every !== undefined && trigger.mode !== "fixed-delay");
  if (left < 1 || !isSeries || (due === null && state !== "paused")) return null;
  const { max_firings: _, ...rule } = trigger;
  if (trigger.cron !== undefined || trigger.start !== undefined) {
    const count = Math.min(MOST_ASKED, left + Math.ceil((trigger.jitter ?? 0) / shortestOf(trigger)));
    return { body: { tenant, id, trigger: rule }, parameters: { count, from: beforeJitter(schedule, now) } };
  }
  const { jitter: _jitter, window: _window, ...steady } = rule;
  return {
    body: { tenant, id, trigger: { ...steady, start: due ?? schedule.accepted_at } },
    parameters: { count: left, from: Math.min(due ?? now, now) },
  };
}

/**
 * Return the next firings, UTC epoch ms: the upcoming ones in a preview's answer.
 * @param {Schedule} schedule
 * @param {number[]} next
 * @param {number} most firings
 * @param {number} now UTC epoch ms
 */
export function firingsOf(schedule, next, most, now) {
  const { due } = schedule;
  const later = next.filter((at) => at > (due ?? now));
  return (due === null ? later : [due, ...later]).slice(0, leftOf(schedule, most));
}

/**
 * @param {Schedule} schedule
 * @param {number} most
 */
function leftOf({ trigger, sequence }, most) {
  return trigger.max_firings === undefined ? most : Math.min(most, trigger.max_firings - sequence + 1);
}

/**
 * Return the earliest planned time of the next firing, but not before its series was accepted.
 * @param {Schedule} schedule
 * @param {number} now
 */
function beforeJitter({ trigger, due, accepted_at }, now) {
  const since = due === null ? now : due - 1;
  return Math.max(since - (trigger.jitter ?? 0), Math.min(accepted_at, since));
}

/**
 * Return the minimum time between two planned firings, ms: cron expressions with six or more fields have seconds.
 * @param {import("./types.d.ts").Trigger} trigger
 */
function shortestOf({ cron, every = 1 }) {
  if (cron === undefined) return every;
  return cron.trim().split(/\s+/).length > 5 ? 1_000 : 60_000;
}
