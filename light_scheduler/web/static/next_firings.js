/**
 * What to ask for the next firings of a schedule that is pending. Pure.
 * @module
 */

/** @typedef {import("./types.d.ts").Schedule} Schedule */

/**
 * Return the body and the parameters of a preview that continues a series where it is, or null if only its next firing is known.
 * A fixed rate goes on from its next due; its jitter is in there already.
 * @param {Schedule} schedule
 * @param {number} most firings
 * @param {number} now UTC epoch ms
 */
export function previewOf({ tenant, id, trigger, due, sequence }, most, now) {
  const left = trigger.max_firings === undefined ? most : Math.min(most, trigger.max_firings - sequence + 1);
  if (left < 1 || (trigger.cron === undefined && trigger.every === undefined) || trigger.mode === "fixed-delay") {
    return null;
  }
  const { max_firings: _, ...rule } = trigger;
  if (trigger.cron !== undefined) {
    return { body: { tenant, id, trigger: rule }, parameters: { count: left, from: due === null ? now : due - 1 } };
  }
  const { jitter: _jitter, window: _window, ...steady } = rule;
  return {
    body: { tenant, id, trigger: { ...steady, start: due ?? now } },
    parameters: { count: left, from: Math.min(due ?? now, now) },
  };
}
