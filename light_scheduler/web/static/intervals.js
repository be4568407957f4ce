/**
 * Bars of what is due in each minute, hour or day. Pure.
 * @module
 */

/** @typedef {"minute" | "hour" | "day"} By */
/** @typedef {{ from: number, to: number, count: number }} Bar instants in UTC epoch ms */

/** @type {Record<By, number>} */
export const LENGTHS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 };

/** Number of intervals shown at once. */
export const SHOWN = { minute: 60, hour: 24, day: 30 };

/** The interval of the next zoom level; a minute opens a list of schedules. */
const FINER = /** @type {Record<By, By | null>} */ ({ day: "hour", hour: "minute", minute: null });

/**
 * Return the range that is shown at once, starting with the interval of an instant; intervals are in UTC.
 * @param {number} at UTC epoch ms
 * @param {By} by
 * @returns {{ from: number, to: number }} UTC epoch ms
 */
export function rangeFrom(at, by) {
  const from = Math.floor(at / LENGTHS[by]) * LENGTHS[by];
  return { from, to: from + SHOWN[by] * LENGTHS[by] };
}

/**
 * Return a bar for each interval of a range, including empty ones.
 * @param {{ due_from: number, count: number }[]} counts
 * @param {By} by
 * @param {number} from UTC epoch ms
 * @param {number} to UTC epoch ms
 * @returns {Bar[]}
 */
export function barsOf(counts, by, from, to) {
  const length = LENGTHS[by];
  const bars = Array.from(
    { length: Math.round((to - from) / length) },
    (_, index) => ({ from: from + index * length, to: from + (index + 1) * length, count: 0 }),
  );
  for (const { due_from: at, count } of counts) {
    const bar = bars[Math.floor((at - from) / length)];
    if (bar) bar.count += count;
  }
  return bars;
}

/**
 * Return the height of each bar: `most` for one with `top` schedules, and at least `least` for any with schedules.
 * @param {Bar[]} bars
 * @param {number} most
 * @param {number} least
 * @param {number} top
 */
export function heightsOf(bars, most, least, top) {
  return bars.map(({ count }) => (count ? Math.max(least, (count / top) * most) : 0));
}

/**
 * Return the number of schedules per target topic, in descending order.
 * @param {{ target_topic: string, count: number }[]} counts
 * @returns {[string, number][]}
 */
export function byTopic(counts) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const { target_topic: topic, count } of counts) sums.set(topic, (sums.get(topic) ?? 0) + count);
  return [...sums].sort(([a, more], [b, less]) => less - more || (a < b ? -1 : 1));
}

/**
 * Return the view of a bar's content, with its parameters. Without a tenant, a minute opens its tenants.
 * @param {Bar} bar
 * @param {By} by
 * @param {import("./ahead.js").Scope} scope
 * @returns {[string, Record<string, string | number | undefined>]}
 */
export function inside(bar, by, scope) {
  const finer = FINER[by];
  if (finer) return ["upcoming", { ...scope, by: finer, from: bar.from }];
  const { tenant } = scope;
  if (tenant) return ["schedules", { tenant, due_from: bar.from, due_to: bar.to, sort: "due" }];
  return ["upcoming", { ...scope, group: "tenant", by, from: bar.from, to: bar.to }];
}
