/**
 * What needs attention, in one list: partitions that do not run, workers that do not answer. Pure but for its elements.
 * @module
 */

import { keyOf, partitionsOf } from "./cluster.js";
import { h } from "./elements.js";
import { count, duration, plural } from "./format.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */

/**
 * Return a sentence for each worker and partition that is not as it should be.
 * @param {Cluster} cluster
 * @returns {string[]}
 */
export function troublesOf(cluster) {
  const gone = cluster.workers.filter(({ info }) => !info).map(({ url, reason, partitions }) => {
    const names = Object.entries(partitions).flatMap(([topic, numbers]) =>
      numbers.map((partition) => keyOf({ topic, partition }))
    );
    return `Worker ${url} ${reason}. ${names.length ? `Its partitions are not shown: ${names.join(", ")}.` : ""}`
      .trim();
  });
  const partitions = partitionsOf(cluster)
    .filter(({ state }) => state !== "running" && state !== "unreachable")
    .map(({ topic, partition, owner, state, lane, reason }) => {
      const where = owner === null ? "" : ` on ${owner}`;
      const how = state === "restoring" && lane?.restore ? ` (${restoreProgress(lane.restore)})` : "";
      return `Partition ${keyOf({ topic, partition })} is ${state}${where}${how}.${reason ? ` ${reason}` : ""}`;
    });
  return [...gone, ...partitions];
}

/**
 * Return how far a restore has come: "45 %, 12 s left".
 * @param {import("./types.d.ts").Restore} restore
 */
export function restoreProgress({ done, total, seconds_left: left }) {
  const share = total ? Math.floor((100 * done) / total) : 100;
  return `${share} % of ${count(total)}${left === null ? "" : `, ${duration(left * 1_000)} left`}`;
}

/**
 * Return a notice of all troubles, or that there are none.
 * @param {Cluster} cluster
 */
export function troublesNotice(cluster) {
  const troubles = troublesOf(cluster);
  const partitions = partitionsOf(cluster).length;
  if (!troubles.length) {
    const all = `${plural(cluster.workers.length, "worker")}, ${plural(partitions, "partition")}: all running.`;
    return h("div", { class: "notice good", role: "status" }, h("p", {}, all));
  }
  return h(
    "div",
    { class: "notice bad", role: "status" },
    h("p", {}, h("strong", {}, `${plural(troubles.length, "problem")} in the cluster`)),
    h("ul", {}, ...troubles.map((text) => h("li", {}, text))),
  );
}
