/**
 * The workers: version, clock, and incidents since they took their partitions.
 * @module
 */

import { isAdmin } from "./definition.js";
import { doctorSection } from "./doctor.js";
import { h } from "./elements.js";
import { count, duration, MISSING } from "./format.js";
import { showCluster } from "./live.js";
import { troublesNotice } from "./troubles.js";
import { badge, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */
/** @typedef {import("./types.d.ts").Lane} Lane */
/** @typedef {import("./types.d.ts").Worker} Worker */

const WORKERS = [
  { name: "Worker" },
  { name: "State" },
  { name: "Version" },
  { name: "Partitions", number: true },
  { name: "Standbys", number: true },
  { name: "Clock ahead of the broker" },
];

/** Incidents, each with its name and meaning. */
const INCIDENTS = /** @type {const} */ ([
  ["restarts", "Restarts", "A lane started again after a failure."],
  ["rebuilds", "Rebuilds", "A local copy was deleted and rebuilt."],
  ["jumps", "Input jumps", "Reading could not continue at its position, because the log had changed."],
  ["expired_commands", "Expired commands", "Commands were deleted from their topic before they were read."],
  ["expired", "Expired firings", "Firings were not delivered because their time to live had passed."],
  ["lost_results", "Lost results", "A reply topic could not take an answer."],
  ["dead_letters", "Dead letters", "Commands and firings became dead letters."],
]);

/**
 * @param {import("./types.d.ts").Context} context
 * @returns {import("./types.d.ts").View}
 */
export function health({ identity, signal }) {
  const workers = h("div", {}, loading());
  void showCluster(workers, (cluster) => draw(cluster, isAdmin(identity)), signal);
  return { title: "Health", node: h("div", {}, workers, isAdmin(identity) && doctorSection(signal)) };
}

/**
 * @param {Cluster} cluster
 * @param {boolean} hasChecks whether the page itself offers the checks
 */
function draw(cluster, hasChecks) {
  return [
    troublesNotice(cluster),
    table("Workers", WORKERS, cluster.workers.map(worker)),
    h("h2", {}, "Incidents since workers took over their partitions"),
    table("Incidents", [{ name: "What" }, { name: "Number", number: true }, { name: "Meaning" }], incidents(cluster)),
    !hasChecks &&
    h("p", { class: "note" }, "light-scheduler doctor also checks topics, rights, certificates and disk."),
  ];
}

/** @param {Worker} worker */
function worker({ url, partitions, info, reason }) {
  const assigned = Object.values(partitions).reduce((sum, numbers) => sum + numbers.length, 0);
  return [
    userText(url),
    info ? badge("running") : [badge("unreachable"), h("p", { class: "note" }, reason)],
    info ? userText(info.version) : MISSING,
    count(assigned),
    info ? count(info.standbys.length) : MISSING,
    skew(info?.lanes ?? []),
  ];
}

/**
 * Return the largest clock difference that a lane has seen.
 * @param {Lane[]} lanes
 */
function skew(lanes) {
  const seen = lanes.flatMap(({ clock_skew: ms }) => (ms === null ? [] : [ms]));
  if (!seen.length) return MISSING;
  return duration(seen.reduce((most, ms) => (Math.abs(ms) > Math.abs(most) ? ms : most)));
}

/** @param {Cluster} cluster */
function incidents(cluster) {
  const lanes = cluster.workers.flatMap(({ info }) => info?.lanes ?? []);
  return INCIDENTS.map((
    [name, title, meaning],
  ) => [title, incident(lanes.reduce((sum, lane) => sum + lane[name], 0)), meaning]);
}

/**
 * Return the number of times that something went wrong, highlighted if it is not 0.
 * @param {number} times
 */
function incident(times) {
  return times ? h("span", { class: "warning" }, count(times)) : count(times);
}
