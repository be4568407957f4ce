/**
 * Ranges of a chart of upcoming firings: the shown one, zooming in and out. Pure.
 * @module
 */

import { LENGTHS, rangeFrom, SHOWN } from "./intervals.js";

/** @typedef {import("./intervals.js").Bar} Bar */
/** @typedef {import("./intervals.js").By} By */
/** @typedef {{ by: By, from: number, to: number }} Range whole intervals; instants in UTC epoch ms */

/** A zoomed range uses the shortest intervals of which it has at most this number. */
export const MOST_BARS = 120;

/** Longest range when zooming out, in days. */
const MOST_DAYS = 366;

const SHORTEST_FIRST = /** @type {By[]} */ (["minute", "hour", "day"]);

/**
 * Return the whole intervals that cover the time between two instants.
 * @param {number} from UTC epoch ms
 * @param {number} to UTC epoch ms
 * @param {By | null} by null: as fits
 * @returns {Range}
 */
export function rangeOf(from, to, by) {
  const fitting = SHORTEST_FIRST.map((each) => whole(from, to, each)).filter((range) =>
    number(range) <= MOST_BARS || range.by === "day"
  );
  return fitting.find((range) => range.by === by) ?? fitting[0];
}

/**
 * Return the range of some adjacent bars.
 * @param {Bar[]} bars
 * @param {number} first index
 * @param {number} last index; may be before the first
 */
export function zoomedInto(bars, first, last) {
  const [begin, end] = [Math.min(first, last), Math.max(first, last)];
  return rangeOf(bars[begin].from, bars[end].to, null);
}

/**
 * Return a longer range around another one: the default number of its intervals, or else of the next longer ones. It does not begin before
 * now, unless the other one does. Null if there is none.
 * @param {Range} range
 * @param {number} now UTC epoch ms
 * @returns {Range | null}
 */
export function zoomedOut(range, now) {
  const length = range.to - range.from;
  const longer = SHORTEST_FIRST.slice(SHORTEST_FIRST.indexOf(range.by))
    .map((by) => ({ by, length: SHOWN[by] * LENGTHS[by] }))
    .concat({ by: "day", length: MOST_DAYS * LENGTHS.day })
    .find((each) => each.length > length);
  if (!longer) return null;
  const middle = Math.max(0, range.from - (longer.length - length) / 2);
  const { from } = rangeFrom(Math.max(middle, Math.min(now, range.from)), longer.by);
  return { by: longer.by, from, to: from + longer.length };
}

/**
 * Return the address parameters for a range; the end is omitted if the range has the default length.
 * @param {Range} range
 */
export function parametersOf({ by, from, to }) {
  return rangeFrom(from, by).to === to ? { by, from } : { by, from, to };
}

/**
 * Return the index of the bar at a position, limited to the first and last one.
 * @param {number} x
 * @param {{ left: number, step: number, bars: number }} places where the first bar begins, and how wide each is
 */
export function indexAt(x, { left, step, bars }) {
  return Math.max(0, Math.min(bars - 1, Math.floor((x - left) / step)));
}

/**
 * @param {number} from
 * @param {number} to
 * @param {By} by
 * @returns {Range}
 */
function whole(from, to, by) {
  const length = LENGTHS[by];
  const begin = Math.floor(from / length) * length;
  return { by, from: begin, to: Math.max(begin + length, Math.ceil(to / length) * length) };
}

/** @param {Range} range */
function number({ by, from, to }) {
  return (to - from) / LENGTHS[by];
}
