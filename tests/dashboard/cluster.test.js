import assert from "node:assert/strict";
import { accepted, partitionsOf, percentile, targetsOf, totals } from "../../light_scheduler/web/static/cluster.js";
import { Rates } from "../../light_scheduler/web/static/rates.js";
import { troublesOf } from "../../light_scheduler/web/static/troubles.js";
import { corners } from "../../light_scheduler/web/static/chart.js";

const BUCKETS = 17;
const TOPIC = "commands";

/**
 * @param {number} partition
 * @param {Record<string, unknown>} [fields]
 * @returns {any}
 */
const lane = (partition, fields = {}) => ({
  topic: TOPIC,
  partition,
  state: "running",
  reason: null,
  restore: null,
  pending: 0,
  lag: null,
  oldest_due: null,
  outcomes: {},
  firings: 0,
  dead_letters: 0,
  lateness: { counts: new Array(BUCKETS).fill(0), sum_ms: 0, max_ms: 0 },
  ...fields,
});

/**
 * @param {string} url
 * @param {number[]} partitions
 * @param {any} info
 * @returns {any}
 */
const worker = (url, partitions, info) => ({
  url,
  partitions: { [TOPIC]: partitions },
  info: info && { lanes: [], standbys: [], targets: [], ...info },
  reason: info ? null : "did not answer in time",
});

/**
 * @param {any[]} workers
 * @param {number} time
 * @returns {any}
 */
const cluster = (workers, time = 0) => ({ time, workers, unowned: [] });

Deno.test("totals are sums over all lanes, and the earliest due", () => {
  const lanes = [lane(0, { pending: 2, lag: 1, oldest_due: 9 }), lane(1, { pending: 3, firings: 4, oldest_due: 7 })];
  const expected = { pending: 5, lag: 1, deadLetters: 0, firings: 4, nextDue: 7 };
  assert.deepEqual(totals(cluster([worker("a", [0, 1], { lanes })])), expected);
  assert.deepEqual(totals(cluster([])).lag, null);
});

Deno.test("commands that changed nothing are not accepted", () => {
  assert.equal(accepted(lane(0, { outcomes: { scheduled: 3, cancelled: 1, rejected: 5, not_found: 2 } })), 4);
});

Deno.test("partitions of a worker that is gone, and those of nobody, are named", () => {
  const state = cluster([
    worker("a", [0], {
      lanes: [lane(0)],
      standbys: [{ topic: TOPIC, partition: 1, reason: null, pending: 0, lag: 3 }],
    }),
    worker("b", [1], null),
  ]);
  state.unowned = [{ topic: TOPIC, partition: 2 }];
  assert.deepEqual(partitionsOf(state).map(({ partition, state, owner }) => [partition, state, owner]), [
    [0, "running", "a"],
    [1, "unreachable", "b"],
    [2, "unowned", null],
  ]);
  assert.deepEqual(partitionsOf(state)[1].standbys, [{ url: "a", lag: 3, reason: null }]);
  assert.deepEqual(troublesOf(state), [
    "Worker b did not answer in time. Its partitions are not shown: commands[1].",
    "Partition commands[2] is unowned. No worker owns it. Its firings wait.",
  ]);
});

Deno.test("partitions that the counts lack are named, unless they are already", () => {
  const state = cluster([worker("a", [0, 1], { lanes: [lane(0), lane(1)] }), worker("b", [2], null)]);
  const missing = [
    { topic: TOPIC, partition: 1, worker: "a", reason: "did not answer in time" },
    { topic: TOPIC, partition: 2, worker: "b", reason: "did not answer in time" },
    { topic: TOPIC, partition: 3, worker: null, reason: "no worker has it" },
  ];
  assert.deepEqual(troublesOf(state, missing), [
    "Worker b did not answer in time. Its partitions are not shown: commands[2].",
    "Partition commands[1] is not in the counts: a did not answer in time.",
    "Partition commands[3] is not in the counts: no worker has it.",
  ]);
});

Deno.test("a restoring partition says how far it is", () => {
  const restore = { done: 450, total: 1000, per_s: 1, seconds_left: 12 };
  const lanes = [lane(0, { state: "restoring", restore })];
  assert.deepEqual(troublesOf(cluster([worker("a", [0], { lanes })])), [
    "Partition commands[0] is restoring on a (45 % of 1,000, 12 s left).",
  ]);
});

Deno.test("a partition that its owner has just been given is starting", () => {
  const lanes = [lane(0, { state: "created" }), lane(1, { state: "fenced" })];
  assert.deepEqual(troublesOf(cluster([worker("a", [0, 1], { lanes })])), [
    "Partition commands[0] is starting on a.",
    "Partition commands[1] is starting on a.",
  ]);
});

Deno.test("of two workers that speak for a partition, its owner counts", () => {
  const moving = cluster([
    worker("a", [], { lanes: [lane(0, { state: "closing" })] }),
    worker("b", [0], { lanes: [lane(0)] }),
  ]);
  assert.deepEqual(partitionsOf(moving).map(({ owner, state }) => [owner, state]), [["b", "running"]]);
});

Deno.test("a target that two workers see is one", () => {
  const target = { topic: "t", partitions: [1], unavailable_since: 5, waiting: 2, reason: "it has no leader" };
  const other = { ...target, partitions: [0], unavailable_since: 3 };
  const state = cluster([worker("a", [], { targets: [target] }), worker("b", [], { targets: [other] })]);
  assert.deepEqual(targetsOf(state), [{ ...target, partitions: [0, 1], unavailable_since: 3, waiting: 4 }]);
});

Deno.test("a percentile is the upper bound of its bucket", () => {
  const counts = new Array(BUCKETS).fill(0);
  assert.equal(percentile(counts, 0.5), null);
  counts[0] = 50;
  counts[3] = 49;
  counts[16] = 1;
  assert.deepEqual([0.5, 0.99, 1].map((share) => percentile(counts, share)), [1, 10, Infinity]);
});

Deno.test("rates are differences of counters, and a takeover begins anew", () => {
  const rates = new Rates();
  /** @type {(time: number, firings: number) => void} */
  const at = (time, firings) => {
    const counts = new Array(BUCKETS).fill(0);
    counts[0] = firings;
    const lanes = [lane(0, { firings, lateness: { counts, sum_ms: 0, max_ms: 0 } })];
    rates.add(cluster([worker("a", [0], { lanes })], time));
  };
  at(1_000, 100);
  at(1_000, 900);
  assert.deepEqual(rates.samples, []);
  at(3_000, 104);
  at(5_000, 6);
  assert.deepEqual(rates.samples.map(({ fired }) => fired), [2, 3]);
  assert.equal(rates.lateness()[0], 10);
});

Deno.test("what has grown while nobody looked is not of the last minute", () => {
  const rates = new Rates();
  /** @type {(time: number, firings: number) => void} */
  const at = (time, firings) => {
    const counts = new Array(BUCKETS).fill(firings);
    rates.add(
      cluster([worker("a", [0], { lanes: [lane(0, { firings, lateness: { counts, sum_ms: 0, max_ms: 0 } })] })], time),
    );
  };
  at(1_000, 100);
  at(3_000, 104);
  at(3_600_000, 900_000);
  assert.deepEqual([rates.samples, rates.lateness()[0]], [[], 0]);
  at(3_602_000, 900_006);
  assert.deepEqual([rates.samples.map(({ fired }) => fired), rates.lateness()[0]], [[3], 6]);
});

Deno.test("a line is drawn from left to right, higher for more", () => {
  assert.equal(corners([{ at: 0, value: 0 }, { at: 10, value: 5 }], 0, 10), "0.0,42.0 240.0,2.0");
});
