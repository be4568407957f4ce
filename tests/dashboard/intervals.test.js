import assert from "node:assert/strict";
import { barsOf, byTopic, heightsOf, inside, rangeFrom } from "../../light_scheduler/web/static/intervals.js";

const HOUR = 3_600_000;
const NOON = Date.UTC(2030, 0, 31, 12);

Deno.test("there is a bar for each interval, and counts of one interval are added up", () => {
  const counts = [
    { due_from: NOON, count: 2 },
    { due_from: NOON, count: 3 },
    { due_from: NOON + 2 * HOUR, count: 1 },
    { due_from: NOON + 3 * HOUR, count: 9 },
  ];
  const bars = barsOf(counts, "hour", NOON, NOON + 3 * HOUR);
  assert.deepEqual(bars.map(({ count }) => count), [5, 0, 1]);
  assert.deepEqual(bars[1], { from: NOON + HOUR, to: NOON + 2 * HOUR, count: 0 });
});

Deno.test("a day opens into all of its hours, wherever in an interval the instant is", () => {
  const midnight = Date.UTC(2030, 0, 31);
  assert.deepEqual(rangeFrom(midnight, "hour"), { from: midnight, to: midnight + 24 * HOUR });
  assert.deepEqual(rangeFrom(NOON + 7, "hour"), { from: NOON, to: NOON + 24 * HOUR });
  assert.deepEqual(rangeFrom(NOON, "minute"), { from: NOON, to: NOON + HOUR });
  assert.deepEqual(rangeFrom(NOON, "day"), { from: midnight, to: midnight + 30 * 24 * HOUR });
});

Deno.test("a bar is as high as its part of the axis, and few schedules beside many are still seen", () => {
  const bars = [0, 1, 500, 100_000].map((count) => ({ from: NOON, to: NOON, count }));
  assert.deepEqual(heightsOf(bars, 200, 2, 100_000), [0, 2, 2, 200]);
  assert.deepEqual(heightsOf([], 200, 2, 1), []);
});

Deno.test("topics come by how much is due for them", () => {
  const counts = [
    { target_topic: "b", count: 1 },
    { target_topic: "a", count: 1 },
    { target_topic: "c", count: 1 },
    { target_topic: "c", count: 4 },
  ];
  assert.deepEqual(byTopic(counts), [["c", 5], ["a", 1], ["b", 1]]);
});

Deno.test("a day opens into hours, an hour into minutes, and a minute into its schedules", () => {
  const bar = { from: NOON, to: NOON + 60_000, count: 1 };
  assert.deepEqual(inside(bar, "day", { tenant: "shop" }), ["upcoming", { tenant: "shop", by: "hour", from: NOON }]);
  assert.deepEqual(inside(bar, "hour", { tenant: "shop" }), ["upcoming", { tenant: "shop", by: "minute", from: NOON }]);
  const within = { tenant: "shop", due_from: NOON, due_to: NOON + 60_000, sort: "due" };
  assert.deepEqual(inside(bar, "minute", { tenant: "shop" }), ["schedules", within]);
});

Deno.test("of all tenants, a day opens into hours of the same scope, and a minute into its tenants", () => {
  const bar = { from: NOON, to: NOON + 60_000, count: 1 };
  const scope = { target: "out", group: "target" };
  assert.deepEqual(inside(bar, "day", scope), ["upcoming", { ...scope, by: "hour", from: NOON }]);
  const within = { target: "out", group: "tenant", by: "minute", from: NOON, to: NOON + 60_000 };
  assert.deepEqual(inside(bar, "minute", scope), ["upcoming", within]);
});
