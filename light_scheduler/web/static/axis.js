/**
 * Positions of the lines and labels of a chart's axes. Pure.
 * @module
 */

import { LENGTHS } from "./intervals.js";

/** @typedef {import("./intervals.js").Bar} Bar */
/** @typedef {import("./intervals.js").By} By */

const MOST_LINES = 4;
const MINUTE = 60_000;

/** Beyond this number of days, labels include year and month. */
const A_YEAR = 366;

/** Possible distances between labels, in minutes, hours or days. */
const STEPS = /** @type {Record<By, number[]>} */ ({
  minute: [1, 5, 10, 15, 30, 60],
  hour: [1, 2, 3, 6, 12, 24, 48],
  day: [1, 2, 5, 10, 20, 30, 60, 120, 365, 730, 1825],
});

/**
 * Return the round integers for the lines of an axis of counts, from 0 up to one that is at least `most`.
 * @param {number} most
 * @returns {number[]}
 */
export function linesTo(most) {
  const rough = Math.max(1, most / MOST_LINES);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? 10 * power;
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, line) => line * step);
}

/**
 * Return a short form of a count for an axis: 950, 1.5k, 20M.
 * @param {number} value
 */
export function brief(value) {
  const [size, unit] = value >= 1e6 ? [1e6, "M"] : value >= 1e3 ? [1e3, "k"] : [1, ""];
  return `${Number((value / size).toFixed(1))}${unit}`;
}

/**
 * Return the bars with a label, at round times, as many as fit. Days are in UTC, whatever the zone.
 * @param {Bar[]} bars
 * @param {By} by
 * @param {number} room how many labels fit
 * @param {(at: number) => number} offsetOf minutes that the clock of the user is ahead of UTC at an instant
 * @returns {{ index: number, label: string }[]}
 */
export function labelsOf(bars, by, room, offsetOf) {
  const steps = STEPS[by];
  const step = steps.find((each) => bars.length / each <= room) ?? steps[steps.length - 1];
  return bars.flatMap(({ from }, index) => {
    const at = by === "day" ? from : from + offsetOf(from) * MINUTE;
    const number = by === "day" ? index : Math.floor(at / LENGTHS[by]);
    return number % step ? [] : [{ index, label: labelOf(at, by, bars.length > A_YEAR) }];
  });
}

/**
 * @param {number} at epoch ms of the clock that is shown
 * @param {By} by
 * @param {boolean} hasYears
 */
function labelOf(at, by, hasYears) {
  const text = new Date(at).toISOString();
  if (by === "day" && hasYears) return text.slice(0, 7);
  const time = text.slice(11, 16);
  return by === "day" || time === "00:00" ? text.slice(5, 10) : time;
}
