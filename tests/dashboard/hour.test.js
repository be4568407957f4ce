import assert from "node:assert/strict";
import { beginOf, lineOf } from "../../light_scheduler/web/static/hour.js";

/** @type {(at: number, accepted: number, p99: number | null) => any} */
const sample = (at, accepted, p99) => ({ at, accepted, fired: 0, p50: p99, p90: p99, p99, backlog: null });

Deno.test("a line has the values that are known, and the highest of them", () => {
  const hour = [sample(1, 5, null), sample(2, 9, 20), sample(3, 7, 10)];
  assert.deepEqual(lineOf(hour, "p99"), { values: [{ at: 2, value: 20 }, { at: 3, value: 10 }], highest: 20 });
  assert.deepEqual(lineOf(hour, "accepted").highest, 9);
});

Deno.test("without a value there is no line and no highest", () => {
  for (const hour of [null, [], [sample(1, 0, null)]]) {
    assert.deepEqual(lineOf(hour, "backlog"), { values: [], highest: null });
  }
});

Deno.test("a chart begins an hour ago, or with the first sample, but not less than five minutes ago", () => {
  const now = 10_000_000, hour = (/** @type {number} */ minutes) => [sample(now - minutes * 60_000, 1, 1)];
  assert.deepEqual(beginOf(hour(60), now), { from: now - 3_600_000, label: "1 h ago" });
  assert.deepEqual(beginOf(hour(61), now), { from: now - 3_600_000, label: "1 h ago" });
  assert.deepEqual(beginOf(hour(12), now), { from: now - 720_000, label: "12 min ago" });
  for (const samples of [null, [], hour(1)]) assert.deepEqual(beginOf(samples, now).label, "5 min ago");
});
