/**
 * The last hour, as the workers have kept it. Pure.
 * @module
 */

/** @typedef {import("./types.d.ts").HourSample} HourSample */

export const HOUR_MS = 3_600_000;

/**
 * Return what a chart of the last hour shows of one figure: its values, without those that are not known, and the highest.
 * @param {HourSample[] | null} samples
 * @param {"accepted" | "fired" | "p99" | "backlog"} what
 */
export function lineOf(samples, what) {
  const values = (samples ?? []).flatMap((sample) => {
    const value = sample[what];
    return value === null ? [] : [{ at: sample.at, value }];
  });
  return { values, highest: values.length ? Math.max(...values.map(({ value }) => value)) : null };
}
