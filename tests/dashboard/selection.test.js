import assert from "node:assert/strict";
import {
  counted,
  howMany,
  inWords,
  isOneCommand,
  listed,
  selectionOf,
} from "../../light_scheduler/web/static/selection.js";

Deno.test("one command selects by the beginning of ids and by labels, and nothing finer", () => {
  assert.equal(isOneCommand({ id_prefix: "a", label: "x=y", state: "", sort: "due" }, "cancel"), true);
  const finer = { state: "paused", target_topic: "t", partition: "c[1]", due_from: "+1h", due_to: "+2h" };
  for (const [name, value] of Object.entries({ ...finer, id_contains: "a", label_contains: "b" })) {
    assert.equal(isOneCommand({ [name]: value }, "cancel"), false, name);
  }
  assert.equal(isOneCommand({ state: "paused" }, "resume"), true);
  assert.equal(isOneCommand({ state: "pending" }, "resume"), false);
  assert.equal(isOneCommand({ state: "paused", target_topic: "t" }, "resume"), false);
});

Deno.test("what no command selects is listed with all filters, and not beyond what can be changed one by one", async () => {
  /** @type {any[]} */
  const asked = [];
  /** @type {number[]} */
  const told = [];
  const answers = [page(0, "a"), page(2, "b"), page(1, null)];
  const list = (/** @type {any} */ _, /** @type {any} */ parameters) =>
    Promise.resolve(answers[asked.push(parameters) - 1]);
  const { found, isAll } = await listed(list, { state: "paused", due_to: 7 }, (number) => told.push(number));
  assert.deepEqual([found.length, isAll, told], [3, true, [0, 2, 3]]);
  assert.deepEqual(asked[1], { state: "paused", due_to: 7, limit: 1_000, cursor: "a" });
  const again = [page(3, "a"), page(2, null)];
  again[1].schedules[0] = { ...again[0].schedules[1], version: 2 };
  const each = await listed(() => Promise.resolve(again.shift()), {}, () => {});
  assert.deepEqual(each.found.map(({ version }) => version), [1, 2, 1, 1], "a schedule that is listed twice is one");
  const many = await listed(() => Promise.resolve(page(1_000, "more")), {}, () => {});
  assert.deepEqual([many.found.length, many.isAll], [11_000, false]);
});

Deno.test("a command selects what a list shows", () => {
  assert.deepEqual(selectionOf({ id_prefix: "", label: "" }), { id: "*" });
  assert.deepEqual(selectionOf({ id_prefix: "a*", label: "x=y" }), { id: "a**", labels: "x=y" });
  assert.equal(
    inWords("shop", { id_prefix: "a", label: "x=y" }),
    "of tenant shop, with ids that begin with a, with the labels x=y",
  );
  assert.equal(inWords("shop", {}), "of tenant shop");
  assert.equal(
    inWords("shop", {
      id_contains: "-7",
      label_contains: "bill",
      target_topic: "mails",
      due_from: "+1h",
      due_to: "+2h",
    }),
    "of tenant shop, with ids that contain -7, with bill in a label, that go to mails, due from +1h, due before +2h",
  );
});

/** @type {(schedules: number, next_cursor: string | null, total?: number | null) => any} */
const page = (schedules, next_cursor, total = null) => ({
  schedules: Array.from({ length: schedules }, () => ({ id: `${(ids += 1)}`, version: 1 })),
  next_cursor,
  total,
});
let ids = 0;

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
  const paused = await count(() => page(1_000, "more", 70_000), { state: "paused" });
  assert.deepEqual([paused.found, paused.asked.length], [{ number: 70_000, isAll: true }, 1]);
});

Deno.test("where there are too many to count, the number is the least", async () => {
  const { found, asked } = await count(() => page(1_000, "more"), { id_prefix: "x" });
  assert.deepEqual([found, asked.length], [{ number: 40_000, isAll: false }, 40]);
  assert.equal(howMany(found), "At least 40,000 schedules");
});
