/**
 * Numbers, durations and times for people. Pure.
 * @module
 */

/** @typedef {"local" | "utc" | "relative"} TimeMode */

export const MISSING = "–";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/**
 * Return an integer with separators: 12,345.
 * @param {number | null | undefined} value
 */
export function count(value) {
  return value == null ? MISSING : Math.round(value).toLocaleString("en-US");
}

/**
 * Return events per second with significant digits only: 0, 0.4, 12.5, 1,240.
 * @param {number | null} perSecond
 */
export function rate(perSecond) {
  if (perSecond === null) return MISSING;
  return perSecond.toLocaleString("en-US", { maximumFractionDigits: perSecond < 100 ? 1 : 0 });
}

/**
 * Return bytes with a unit: 512 B, 1.5 KiB.
 * @param {number} bytes
 */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${Number(bytes.toFixed(1)).toLocaleString("en-US")} ${units[unit]}`;
}

/**
 * Return a duration (ms) in its two largest units: 250 ms, 1.5 s, 2 min 5 s, 3 h, 1 d 4 h.
 * @param {number} ms
 * @returns {string}
 */
export function duration(ms) {
  if (ms < 0) return `-${duration(-ms)}`;
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${Number((ms / SECOND).toFixed(ms < 10 * SECOND ? 1 : 0))} s`;
  const [large, small, names] = /** @type {[number, number, string[]]} */ (
    ms < HOUR ? [MINUTE, SECOND, ["min", "s"]] : ms < DAY ? [HOUR, MINUTE, ["h", "min"]] : [DAY, HOUR, ["d", "h"]]
  );
  const rest = Math.floor((ms % large) / small);
  return `${count(Math.floor(ms / large))} ${names[0]}${rest ? ` ${rest} ${names[1]}` : ""}`;
}

/**
 * Return an instant relative to another one: in 5 min, 3 s ago.
 * @param {number} at UTC epoch ms
 * @param {number} now UTC epoch ms
 */
export function relative(at, now) {
  const distance = at - now;
  if (Math.abs(distance) < SECOND) return "now";
  const rounded = duration(Math.floor(Math.abs(distance) / SECOND) * SECOND);
  return distance > 0 ? `in ${rounded}` : `${rounded} ago`;
}

/**
 * Return an instant (UTC epoch ms) as text: 2030-01-31 09:00:00.000 and its zone, or relative to now.
 * @param {number | null | undefined} at
 * @param {TimeMode} mode
 * @param {number} now
 */
export function time(at, mode, now) {
  if (at == null) return MISSING;
  if (mode === "relative") return relative(at, now);
  return mode === "utc" ? utc(at) : local(at);
}

/**
 * Return an instant in UTC. Milliseconds are shown if there are any.
 * @param {number} at
 */
export function utc(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return `${at} ms`;
  return `${date.toISOString().replace("T", " ").replace(/(\.000)?Z$/, "")} UTC`;
}

/**
 * Return an instant in the time zone of this machine, with its offset.
 * @param {number} at
 */
export function local(at) {
  const offset = -new Date(at).getTimezoneOffset();
  const shifted = utc(at + offset * MINUTE).replace(" UTC", "");
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
  return `${shifted} ${offset < 0 ? "-" : "+"}${twoDigits(hours)}:${twoDigits(minutes)}`;
}

/** @param {number} value */
function twoDigits(value) {
  return String(value).padStart(2, "0");
}

/**
 * Return a time rule as part of a sentence: "every 5 min", "cron 0 9 * * * (Europe/Prague)".
 * @param {import("./types.d.ts").Trigger} trigger
 * @param {TimeMode} mode
 * @param {number} now
 */
export function trigger(trigger, mode, now) {
  if (trigger.at !== undefined) return `once, ${time(trigger.at, mode, now)}`;
  if (trigger.every !== undefined) {
    return `every ${duration(trigger.every)}${trigger.mode === "fixed-delay" ? " after completion" : ""}`;
  }
  if (trigger.cron !== undefined) return `cron ${trigger.cron} (${trigger.cron_dialect}, ${trigger.timezone})`;
  const backoff = trigger.backoff;
  if (backoff?.intervals) return `backoff ${backoff.intervals.map(duration).join(", ")}`;
  return backoff?.initial === undefined ? MISSING : `backoff from ${duration(backoff.initial)}, × ${backoff.factor}`;
}

/**
 * Return a number with its noun: "1 partition", "3 partitions".
 * @param {number} number
 * @param {string} noun
 */
export function plural(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/**
 * Return why a partition is missing in an answer: "worker-a:6066 did not answer in time", "no worker has it".
 * @param {import("./types.d.ts").MissingPartition} missing
 */
export function whyMissing({ worker, reason }) {
  return worker === null ? reason : `${worker} ${reason}`;
}
