import assert from "node:assert/strict";
import { counted, howMany, inWords, selectionOf, unknownFilters } from "../../light_scheduler/web/static/selection.js";

Deno.test("filters that a command does not know are named", () => {
  assert.deepEqual(unknownFilters({ id_prefix: "a", label: "x=y", state: "", sort: "due" }, "cancel"), []);
  assert.deepEqual(unknownFilters({ id_contains: "a" }, "cancel"), ["Id contains"]);
  const finer = { state: "paused", target_topic: "t", partition: "c[1]", due_from: "+1h", due_to: "+2h" };
  assert.deepEqual(unknownFilters(finer, "cancel"), ["State", "Target topic", "Partition", "Due from", "Due before"]);
  assert.deepEqual(unknownFilters({ state: "paused" }, "resume"), []);
  assert.deepEqual(unknownFilters({ state: "pending" }, "resume"), ["State"]);
});

Deno.test("a command selects what a list shows", () => {
  assert.deepEqual(selectionOf({ id_prefix: "", label: "" }), { id: "*" });
  assert.deepEqual(selectionOf({ id_prefix: "a*", label: "x=y" }), { id: "a**", labels: "x=y" });
  assert.equal(
    inWords("shop", { id_prefix: "a", label: "x=y" }),
    "of tenant shop, with ids that begin with a, with the labels x=y",
  );
  assert.equal(inWords("shop", {}), "of tenant shop");
});

/** @type {(schedules: number, next_cursor: string | null, total?: number | null) => any} */
const page = (schedules, next_cursor, total = null) => ({ schedules: new Array(schedules), next_cursor, total });

/**
 * @param {(path: string, parameters: any) => any} answer
 * @param {any} filters
 */
async function count(answer, filters) {
  /** @type {any[]} */
  const asked = [];
  const found = await counted((path, parameters) => {
    asked.push([path, path === "upcoming" ? parameters : parameters.cursor]);
    return Promise.resolve(answer(path, parameters));
  }, filters);
  return { found, asked };
}

Deno.test("all of a tenant are counted by its counts, and by nothing else", async () => {
  const { found, asked } = await count(() => ({ pending: [{ count: 2 }, { count: 3 }] }), { sort: "due", label: "" });
  const none = { by: "minute", due_from: "2000-01-01T00:00:00Z", due_to: "2000-01-01T00:00:00Z" };
  assert.deepEqual([found, asked], [{ number: 5, isAll: true }, [["upcoming", none]]]);
});

Deno.test("others are counted page by page", async () => {
  const answer = (/** @type {string} */ _, /** @type {any} */ { cursor }) => (cursor ? page(5, null) : page(7, "a"));
  const { found, asked } = await count(answer, { id_prefix: "x" });
  assert.deepEqual([found, asked], [{ number: 12, isAll: true }, [["schedules", null], ["schedules", "a"]]]);
  assert.deepEqual((await count(() => page(3, null, 3), { label: "x=y" })).found, { number: 3, isAll: true });
});

Deno.test("where there are too many to count, the number is the least", async () => {
  const { found, asked } = await count(() => page(1_000, "more"), { id_prefix: "x" });
  assert.deepEqual([found, asked.length], [{ number: 40_000, isAll: false }, 40]);
  assert.equal(howMany(found), "At least 40,000 schedules");
});
