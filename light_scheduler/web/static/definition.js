/**
 * Builds commands from displayed or typed values. Pure.
 * @module
 */

import { parseInstant } from "./instants.js";

/** @typedef {import("./types.d.ts").ScheduleDetail} ScheduleDetail */
/** @typedef {"once" | "every" | "cron"} Kind */
/** @typedef {{ kind: Kind, at: string, every: string, cron: string, dialect: string, timezone: string }} TypedTrigger */

/**
 * Return a typed trigger in the form of a command. Throws Error if it is incomplete or invalid.
 * @param {TypedTrigger} typed
 * @param {number} now UTC epoch ms
 */
export function triggerOf({ kind, at, every, cron, dialect, timezone }, now) {
  if (kind === "once") {
    const instant = parseInstant(at, now);
    if (instant === null) throw new Error("Enter when it fires, such as +15m or 2030-01-31 09:00.");
    return { at: instant };
  }
  if (kind === "every") {
    if (!every.trim()) throw new Error("Enter an interval, such as 90s, 15m or 2h.");
    return { every: every.trim() };
  }
  if (!cron.trim()) throw new Error("Enter a cron expression, such as 0 9 * * 1-5.");
  return { cron: cron.trim(), cron_dialect: dialect, timezone: timezone.trim() || "UTC" };
}

/**
 * Return labels from "team=billing, kind=reminder". Throws Error if one has no value.
 * @param {string} text
 * @returns {Record<string, string>}
 */
export function labelsOf(text) {
  const pairs = text.split(",").map((pair) => pair.trim()).filter(Boolean);
  return Object.fromEntries(pairs.map((pair) => {
    const at = pair.indexOf("=");
    if (at < 1) throw new Error(`The label "${pair}" has no value. Enter name=value.`);
    return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
  }));
}

/**
 * Return the command that schedules a cancelled schedule again, or null if the result would differ: with headers that are repeated or are
 * not text; a partition key that is not text; firings that wait for their completion or, after a trigger, for their delivery; a series that
 * counts its firings and has begun; a backoff; or a series of intervals that is paused or has a jitter, whose next planned time is not
 * known here. A one-shot whose time is over is rejected, since it would fire at once.
 * @param {ScheduleDetail} found
 */
export function againOf(found) {
  const { headers, trigger, target, awaiting, sequence, state } = found;
  const { masked: _, ...payload } = found.payload ?? {};
  const texts = headers.flatMap(({ name, value }) =>
    value === null || value.text !== undefined ? [[name, value === null ? null : value.text]] : []
  );
  const isWhole = texts.length === headers.length && new Set(headers.map(({ name }) => name)).size === headers.length;
  const hasCounted = trigger.max_firings !== undefined && sequence > 1;
  const isEvery = trigger.every !== undefined;
  const isGridUnknown = isEvery && (found.due === null || trigger.jitter !== undefined);
  if (!isWhole || target.partition_key_base64 !== undefined || awaiting.length) return null;
  if (hasCounted || trigger.backoff !== undefined || isGridUnknown || found.triggered !== undefined) return null;
  const { acknowledgement: completion } = found;
  return {
    trigger: isEvery ? { ...trigger, start: found.due } : trigger,
    target: {
      topic: target.topic,
      ...(target.key_base64 === undefined ? { key: target.key } : { key_base64: target.key_base64 }),
      ...(target.partition === null ? {} : { partition: target.partition }),
      ...(target.partition_key === undefined ? {} : { partition_key: target.partition_key }),
      headers: Object.fromEntries(texts),
    },
    payload: found.payload === null ? null : payload,
    labels: found.labels,
    priority: found.priority,
    misfire: found.misfire,
    misfire_grace: found.misfire_grace,
    ...(found.ttl === null ? {} : { ttl: found.ttl }),
    ...(state === "paused" ? { paused: true } : {}),
    ...(completion === null ? {} : {
      ack_timeout: completion.timeout,
      max_attempts: completion.max_attempts,
      overlap: completion.overlap,
    }),
    ...(trigger.at === undefined ? {} : { on_past: "reject" }),
    on_conflict: "fail",
  };
}

/**
 * Return whether a token may change schedules of its tenants.
 * @param {import("./types.d.ts").Identity} identity
 */
export function mayWrite({ role }) {
  return role === "write" || role === "admin";
}

/**
 * Return whether a token may change settings of the whole cluster, and see where workers run.
 * @param {import("./types.d.ts").Identity} identity
 */
export function isAdmin({ role, tenants }) {
  return role === "admin" && tenants === null;
}
