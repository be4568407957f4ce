import assert from "node:assert/strict";
import { filling } from "../../light_scheduler/web/static/filling.js";

/**
 * Return what a page looks like after each request.
 * @param {[number, string | null][]} answers schedules and the next cursor
 * @param {string | null} begin
 * @param {number | null} total
 */
async function filled(answers, begin = null, total = null) {
  /** @type {any[]} */
  const asked = [], seen = [];
  const ask = (/** @type {any} */ place) => {
    const [number, next_cursor] = answers[Math.min(asked.push(place), answers.length) - 1];
    return Promise.resolve({ schedules: new Array(number).fill({}), next_cursor, total });
  };
  for await (const { page, isFull } of filling(ask, 5, begin)) {
    seen.push([page.schedules.length, page.next_cursor, page.total, isFull]);
  }
  return { asked, seen };
}

Deno.test("a page is filled by further requests, which ask for no more than it has room for", async () => {
  const { asked, seen } = await filled([[0, "a"], [2, "b"], [3, "c"]]);
  assert.deepEqual(seen, [[0, "a", null, false], [2, "b", null, false], [5, "c", null, true]]);
  assert.deepEqual(asked, [{ limit: 5, cursor: null }, { limit: 5, cursor: "a" }, { limit: 3, cursor: "b" }]);
});

Deno.test("the end of a list ends its page, and the first page knows the total then", async () => {
  assert.deepEqual((await filled([[1, "a"], [2, null]])).seen.at(-1), [3, null, 3, true]);
  assert.deepEqual((await filled([[2, null]], "x")).seen, [[2, null, null, true]]);
});

Deno.test("every page knows the total that a worker counts", async () => {
  assert.deepEqual((await filled([[2, "a"], [3, "b"]], "x", 9)).seen, [[2, "a", 9, false], [5, "b", 9, true]]);
  assert.deepEqual((await filled([[1, "a"], [2, null]], null, 9)).seen.at(-1), [3, null, 3, true]);
});

Deno.test("a search without an end stops after a hundred requests", async () => {
  const { asked, seen } = await filled([[0, "more"]]);
  assert.deepEqual([asked.length, seen.at(-1)], [100, [0, "more", null, true]]);
});
