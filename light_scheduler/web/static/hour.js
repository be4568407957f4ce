/**
 * The last hour, as recorded by the workers. Pure.
 * @module
 */

/** @typedef {import("./types.d.ts").HourSample} HourSample */

export const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/** Minimum time span of the chart of a worker that has just started. */
const LEAST_MS = 5 * MINUTE_MS;

/**
 * Return the data for a chart of one figure in the last hour: its known values, and the highest.
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
 * Return where a chart of the last hour begins: at the first sample, if there is less than an hour of samples.
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
