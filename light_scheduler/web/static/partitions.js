/**
 * The partitions: their owners, their state, and their warm copies.
 * @module
 */

import { partitionsOf, percentile } from "./cluster.js";
import { h } from "./elements.js";
import { count, duration, MISSING } from "./format.js";
import { showCluster } from "./live.js";
import { restoreProgress, troublesNotice } from "./troubles.js";
import { badge, empty, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */
/** @typedef {import("./cluster.js").Partition} Partition */

const COLUMNS = [
  { name: "Partition" },
  { name: "State" },
  { name: "Owner" },
  { name: "Pending", number: true },
  { name: "Backlog", number: true },
  { name: "Next due" },
  { name: "Lateness p99", number: true },
  { name: "Warm standbys" },
];

/**
 * @param {import("./types.d.ts").Context} context
 * @returns {import("./types.d.ts").View}
 */
export function partitions({ signal }) {
  const node = h("div", {}, loading());
  void showCluster(node, draw, signal);
  return { title: "Partitions", node };
}

/** @param {Cluster} cluster */
function draw(cluster) {
  const found = partitionsOf(cluster);
  if (!found.length) return [empty("No worker has a partition yet.")];
  const isProbed = found.some(({ lane }) => lane?.probe);
  const columns = isProbed ? [...COLUMNS, { name: "Last probe" }] : COLUMNS;
  const rows = found.map((partition) => [
    ...row(partition, cluster.time),
    ...(isProbed ? [probe(partition.lane?.probe ?? null, cluster.time)] : []),
  ]);
  return [
    troublesNotice(cluster),
    table("Partitions", columns, rows),
    h("p", { class: "note" }, "Lateness: upper bound for 99 % of the firings since the worker took the partition."),
  ];
}

/**
 * @param {Partition} partition
 * @param {number} now
 */
function row({ topic, partition, owner, lane, state, reason, standbys }, now) {
  return [
    userText(`${topic}[${partition}]`),
    [badge(state), progress(lane), reason && h("p", { class: "note" }, userText(reason, 300))],
    owner === null ? MISSING : userText(host(owner)),
    lane ? count(lane.pending) : MISSING,
    lane ? count(lane.lag) : MISSING,
    instant(lane?.oldest_due, now),
    lateness(lane),
    standbys.length ? standbys.map(standby) : "none",
  ];
}

/** @param {Partition["lane"]} lane */
function progress(lane) {
  if (lane?.state !== "restoring" || !lane.restore) return null;
  const { done, total } = lane.restore;
  return [
    h("progress", { max: Math.max(1, total), value: done, "aria-label": "Restored" }),
    h("p", { class: "note" }, restoreProgress(lane.restore)),
  ];
}

/** @param {Partition["lane"]} lane */
function lateness(lane) {
  const bound = lane ? percentile(lane.lateness.counts, 0.99) : null;
  if (bound === null) return MISSING;
  return bound === Infinity ? "> 10 min" : `≤ ${duration(bound)}`;
}

/**
 * @param {import("./types.d.ts").Probe | null} probe
 * @param {number} now
 */
function probe(probe, now) {
  if (!probe) return MISSING;
  const { last_success: success, last_failure: failure, latency_ms: latency, reason } = probe;
  if (failure !== null && (success === null || failure > success)) {
    return [badge("failed"), " ", instant(failure, now), reason && h("p", { class: "note" }, userText(reason, 300))];
  }
  if (success === null) return "under way";
  return [latency === null ? null : `${duration(latency)}, `, instant(success, now)];
}

/** @param {Partition["standbys"][number]} standby */
function standby({ url, lag, reason }) {
  const state = lag === null ? "not warm yet" : lag === 0 ? "up to date" : `${count(lag)} behind`;
  return h("p", {}, userText(host(url)), `: ${state}`, reason && [". ", userText(reason, 200)]);
}

/** @param {string} url */
function host(url) {
  return URL.canParse(url) ? new URL(url).host : url;
}
