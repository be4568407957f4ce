import assert from "node:assert/strict";
import { countsOf, pendingOf, question } from "../../light_scheduler/web/static/ahead.js";

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
