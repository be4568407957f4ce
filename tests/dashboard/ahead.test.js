import assert from "node:assert/strict";
import { countsOf, inOrder, intoGroup, pendingOf, question } from "../../light_scheduler/web/static/ahead.js";

/** @type {import("../../light_scheduler/web/static/types.d.ts").UpcomingGroups} */
const GROUPS = {
  by: "hour",
  group: "tenant",
  due_from: 0,
  due_to: 7_200_000,
  groups: [
    { name: "shop", due: 3, pending: 5, counts: [{ due_from: 0, count: 3 }] },
    { name: null, due: 1, pending: 1, counts: [{ due_from: 3_600_000, count: 1 }] },
  ],
  complete: true,
};

Deno.test("a tenant is asked for by its path, all tenants by their group", () => {
  assert.deepEqual(question({ tenant: "a b" }, "tenant", 5), ["/api/v1/tenants/a%20b/upcoming", {}]);
  const [path, parameters] = question({ target: "out" }, "partition", 5);
  assert.equal(path, "/api/v1/upcoming");
  assert.deepEqual(parameters, { group: "partition", top: 5, target_topic: "out", partition: undefined });
});

Deno.test("counts and what is pending are those of all groups together", () => {
  assert.deepEqual(countsOf(GROUPS).map(({ count }) => count), [3, 1]);
  assert.equal(pendingOf(GROUPS), 6);
});

Deno.test("an answer about a tenant is read alike", () => {
  /** @type {import("../../light_scheduler/web/static/types.d.ts").Upcoming} */
  const answer = {
    by: "hour",
    due_from: 0,
    due_to: 3_600_000,
    counts: [{ due_from: 0, target_topic: "out", state: "pending", count: 2 }],
    pending: [
      { target_topic: "out", state: "pending", count: 4 },
      { target_topic: "out", state: "paused", count: 1 },
    ],
  };
  assert.deepEqual(countsOf(answer).map(({ count }) => count), [2]);
  assert.equal(pendingOf(answer), 5);
});

Deno.test("a group opens with all of the scope that it was counted in, and the same range", () => {
  const range = { by: /** @type {const} */ ("hour"), from: 0, to: 3_600_000 };
  const within = { by: "hour", from: 0, to: 3_600_000 };
  assert.deepEqual(intoGroup("target", "out", { partition: "c[2]" }, range), [
    "upcoming",
    { target: "out", partition: "c[2]", ...within },
  ]);
  assert.deepEqual(intoGroup("partition", "c[3]", { target: "out", partition: "" }, range), [
    "upcoming",
    { target: "out", partition: "c[3]", ...within },
  ]);
  assert.deepEqual(intoGroup("tenant", "shop", { target: "out", partition: "c[2]" }, range), [
    "schedules",
    { tenant: "shop", target_topic: "out", partition: "c[2]", due_from: 0, due_to: 3_600_000, sort: "due" },
  ]);
});

Deno.test("partitions come by topic, then by number, and tenants as text", () => {
  assert.deepEqual(inOrder("partition", ["c[10]", "d[1]", "c[2]", "c-2[0]"]), ["c[2]", "c[10]", "c-2[0]", "d[1]"]);
  assert.deepEqual(inOrder("tenant", ["t[10]", "t[2]", "a"]), ["a", "t[10]", "t[2]"]);
});
