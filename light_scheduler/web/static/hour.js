/**
 * The last hour, as the workers have kept it. Pure.
 * @module
 */

/** @typedef {import("./types.d.ts").HourSample} HourSample */

export const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** A worker that has just started shows the time since then, and no less than this. */
const LEAST_MS = 5 * MINUTE_MS;

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

/**
 * Return where a chart of the last hour begins: with the first sample, if there is not an hour of them yet.
 * @param {HourSample[] | null} samples
 * @param {number} now UTC epoch ms
 * @returns {{ from: number, label: string }} `label`: "1 h ago", "7 min ago"
 */
export function beginOf(samples, now) {
  const first = samples?.length ? samples[0].at : now;
  const length = Math.min(HOUR_MS, Math.max(LEAST_MS, now - first));
  const minutes = Math.round(length / MINUTE_MS);
  return { from: now - length, label: minutes === 60 ? "1 h ago" : `${minutes} min ago` };
}
