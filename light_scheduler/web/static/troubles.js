/**
 * A list of everything that needs attention: partitions that do not run, workers that do not answer. Pure except for its elements.
 * @module
 */

import { keyOf, partitionsOf } from "./cluster.js";
import { h } from "./elements.js";
import { count, duration, plural, whyMissing } from "./format.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */
/** @typedef {import("./types.d.ts").MissingPartition} Missing */

/** States of a lane before it restores or runs. */
const STARTING = ["assigned", "created", "fenced"];

/**
 * Return a sentence for each worker and partition with a problem.
 * @param {Cluster} cluster
 * @param {Missing[]} [missing] partitions that the overview lacks
 * @returns {string[]}
 */
export function troublesOf(cluster, missing = []) {
  const gone = cluster.workers.filter(({ info }) => !info).map(({ url, reason, partitions }) => {
    const names = Object.entries(partitions).flatMap(([topic, numbers]) =>
      numbers.map((partition) => keyOf({ topic, partition }))
    );
    return `Worker ${url} ${reason}. ${names.length ? `Its partitions are not shown: ${names.join(", ")}.` : ""}`
      .trim();
  });
  const troubled = partitionsOf(cluster).filter(({ state }) => state !== "running");
  const partitions = troubled
    .filter(({ state }) => state !== "unreachable")
    .map(({ topic, partition, owner, state, lane, reason }) => {
      const where = owner === null ? "" : ` on ${owner}`;
      const how = state === "restoring" && lane?.restore ? ` (${restoreProgress(lane.restore)})` : "";
      return `Partition ${keyOf({ topic, partition })} is ${
        STARTING.includes(state) ? "starting" : state
      }${where}${how}.${reason ? ` ${reason}` : ""}`;
    });
  const named = new Set(troubled.map(keyOf));
  const uncounted = missing.filter((each) => !named.has(keyOf(each))).map((each) =>
    `Partition ${keyOf(each)} is not in the counts: ${whyMissing(each)}.`
  );
  return [...gone, ...partitions, ...uncounted];
}

/**
 * Return the progress of a restore: "45 %, 12 s left".
 * @param {import("./types.d.ts").Restore} restore
 */
export function restoreProgress({ done, total, seconds_left: left }) {
  const share = total ? Math.floor((100 * done) / total) : 100;
  return `${share} % of ${count(total)}${left === null ? "" : `, ${duration(left * 1_000)} left`}`;
}

/**
 * Return a notice with all troubles, or a line that there are none.
 * @param {Cluster} cluster
 * @param {Missing[]} [missing] partitions that the overview lacks
 */
export function troublesNotice(cluster, missing = []) {
  const troubles = troublesOf(cluster, missing);
  const partitions = partitionsOf(cluster).length;
  if (!troubles.length) {
    const all = `${plural(cluster.workers.length, "worker")}, ${plural(partitions, "partition")}: all running.`;
    return h("p", { class: "status", role: "status" }, h("span", { class: "badge good" }, all));
  }
  return h(
    "div",
    { class: "notice bad", role: "status" },
    h("p", {}, h("strong", {}, `${plural(troubles.length, "problem")} in the cluster`)),
    h("ul", {}, ...troubles.map((text) => h("li", {}, text))),
  );
}
