/**
 * Combines what the workers report: totals, partitions, troubles. Pure.
 * @module
 */

/** @typedef {import("./types.d.ts").Cluster} Cluster */
/** @typedef {import("./types.d.ts").Lane} Lane */
/** @typedef {import("./types.d.ts").Target} Target */

/**
 * @typedef {object} Partition A partition of a commands topic, with its owner and its copies.
 * @property {string} topic
 * @property {number} partition
 * @property {string | null} owner null: no worker has it.
 * @property {Lane | null} lane null: its owner says nothing about it.
 * @property {string} state The lane's, or "unowned", "unreachable", "assigned".
 * @property {string | null} reason
 * @property {{ url: string, lag: number | null, reason: string | null }[]} standbys
 */

/** Upper bounds (ms) of the workers' buckets of lateness; one more bucket has the rest. */
export const LATENESS_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 600000];

const NOT_ACCEPTED = new Set(["rejected", "conflict", "not_found"]);

/**
 * Return how many commands of a lane changed something, or were stored for later.
 * @param {Lane} lane
 */
export function accepted(lane) {
  return Object.entries(lane.outcomes).reduce((sum, [outcome, n]) => (NOT_ACCEPTED.has(outcome) ? sum : sum + n), 0);
}

/**
 * Return all lanes of all workers that answer, each with its worker.
 * @param {Cluster} cluster
 */
export function lanesOf(cluster) {
  return cluster.workers.flatMap(({ url, info }) => (info?.lanes ?? []).map((lane) => ({ url, lane })));
}

/**
 * Return sums over all lanes. `lag` is null if no lane knows it.
 * @param {Cluster} cluster
 */
export function totals(cluster) {
  const lanes = lanesOf(cluster).map(({ lane }) => lane);
  const lags = lanes.flatMap(({ lag }) => (lag === null ? [] : [lag]));
  const dues = lanes.flatMap(({ oldest_due }) => (oldest_due === null ? [] : [oldest_due]));
  return {
    pending: sum(lanes.map(({ pending }) => pending)),
    lag: lags.length ? sum(lags) : null,
    deadLetters: sum(lanes.map(({ dead_letters }) => dead_letters)),
    firings: sum(lanes.map(({ firings }) => firings)),
    nextDue: dues.length ? Math.min(...dues) : null,
  };
}

/** @param {number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

/**
 * Return every partition that is assigned, reported, or missing, in order.
 * @param {Cluster} cluster
 * @returns {Partition[]}
 */
export function partitionsOf(cluster) {
  /** @type {Map<string, Partition>} */
  const found = new Map();
  for (const { url, partitions, info, reason } of cluster.workers) {
    for (const [topic, numbers] of Object.entries(partitions)) {
      for (const partition of numbers) {
        const state = info ? "assigned" : "unreachable";
        put(found, { topic, partition, owner: url, lane: null, state, reason: info ? null : reason, standbys: [] });
      }
    }
  }
  for (const { topic, partition } of cluster.unowned) {
    const reason = "No worker owns it. Its firings wait.";
    put(found, { topic, partition, owner: null, lane: null, state: "unowned", reason, standbys: [] });
  }
  addLanes(cluster, found);
  addStandbys(cluster, found);
  return [...found.values()].sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition);
}

/**
 * While a partition moves, two workers may report it: the owner's report counts.
 * @param {Cluster} cluster
 * @param {Map<string, Partition>} found
 */
function addLanes(cluster, found) {
  for (const { url, lane } of lanesOf(cluster)) {
    const known = found.get(keyOf(lane));
    if (known && known.owner !== null && known.owner !== url) continue;
    const { topic, partition, state, reason } = lane;
    put(found, { topic, partition, owner: url, lane, state, reason, standbys: [] });
  }
}

/**
 * @param {Cluster} cluster
 * @param {Map<string, Partition>} found
 */
function addStandbys(cluster, found) {
  for (const { url, info } of cluster.workers) {
    for (const standby of info?.standbys ?? []) {
      found.get(keyOf(standby))?.standbys.push({ url, lag: standby.lag, reason: standby.reason });
    }
  }
}

/**
 * @param {Map<string, Partition>} found
 * @param {Partition} partition
 */
function put(found, partition) {
  found.set(keyOf(partition), partition);
}

/** @param {{ topic: string, partition: number }} place */
export function keyOf({ topic, partition }) {
  return `${topic}[${partition}]`;
}

/**
 * Return the target topics that cannot be written to, once each, merged from all workers' reports.
 * @param {Cluster} cluster
 * @returns {Target[]}
 */
export function targetsOf(cluster) {
  /** @type {Map<string, Target>} */
  const found = new Map();
  for (const target of cluster.workers.flatMap(({ info }) => info?.targets ?? [])) {
    const known = found.get(target.topic);
    found.set(target.topic, known ? together(known, target) : target);
  }
  return [...found.values()].sort((a, b) => a.topic.localeCompare(b.topic));
}

/**
 * @param {Target} a
 * @param {Target} b
 * @returns {Target}
 */
function together(a, b) {
  const whole = !a.partitions.length || !b.partitions.length;
  return {
    topic: a.topic,
    partitions: whole ? [] : [...new Set([...a.partitions, ...b.partitions])].sort((x, y) => x - y),
    unavailable_since: Math.min(a.unavailable_since, b.unavailable_since),
    waiting: a.waiting + b.waiting,
    reason: [...new Set([a.reason, b.reason])].join("; "),
  };
}

/**
 * Return an upper bound (ms) of the lateness of a share of the firings: half of them (0.5) were not later than this. Null: there were none;
 * Infinity: it is beyond the last bound.
 * @param {number[]} counts per bucket, not cumulative
 * @param {number} share
 */
export function percentile(counts, share) {
  const total = sum(counts);
  if (!total) return null;
  let seen = 0;
  const bucket = counts.findIndex((number) => (seen += number) >= share * total);
  return LATENESS_BOUNDS[bucket] ?? Infinity;
}
