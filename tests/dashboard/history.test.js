import assert from "node:assert/strict";
import { further, more, searched, shownOf } from "../../light_scheduler/web/static/history.js";

/** @type {(number: number) => any} */
const events = (number) => Array.from({ length: number }, (_, at) => ({ at }));

/**
 * Answer with pages one after the other, and note what is asked for.
 * @param {any[]} pages
 */
function answering(pages) {
  /** @type {any[]} */
  const asked = [];
  /** @type {(parameters: any) => Promise<any>} */
  const ask = (parameters) => {
    asked.push(parameters);
    return Promise.resolve(pages[asked.length - 1]);
  };
  return { asked, ask };
}

Deno.test("a search follows its cursor until there is an event, and goes on from there", async () => {
  const { asked, ask } = answering([
    { events: [], searched_from: 90, next_cursor: "a" },
    { events: events(2), searched_from: 80, next_cursor: "b" },
    { events: events(1), searched_from: 5, next_cursor: null },
  ]);
  const found = await searched(ask, 5);
  assert.deepEqual([found.events.length, found.from, found.cursor], [2, 80, "b"]);
  const further = await more(ask, found);
  assert.deepEqual([further.events.length, further.from, further.cursor], [3, 5, null]);
  assert.deepEqual(asked, [{ since: "1970-01-01T00:00:00.005Z" }, { cursor: "a" }, { cursor: "b" }]);
});

Deno.test("a search ends after a number of requests, and says how far it came", async () => {
  const pages = Array.from({ length: 99 }, (_, at) => ({ events: [], searched_from: 100 - at, next_cursor: "x" }));
  const { asked, ask } = answering(pages);
  const { from, cursor } = await searched(ask, 0);
  assert.deepEqual([asked.length, from, cursor], [11, 90, "x"]);
});

Deno.test("a search from the beginning goes on beyond what is known already", async () => {
  const { ask } = answering([
    { events: events(2), searched_from: 50, next_cursor: "a" },
    { events: events(2), searched_from: 0, next_cursor: null },
  ]);
  assert.equal((await searched(ask, 0, { events: events(2), from: 50 })).events.length, 4);
});

/** Pages of a search whose known events lie thirty requests back, in two of them. */
const farBack = Array.from({ length: 41 }, (_, at) => ({
  events: at === 0 || at === 30 ? events(1) : [],
  searched_from: 100 - at,
  next_cursor: "x",
}));

Deno.test("a search from the beginning loses nothing that is known already, however far back that is", async () => {
  const { asked, ask } = answering(farBack);
  let found = await searched(ask, 0, { events: events(2), from: 70 });
  assert.deepEqual([asked.length, found.from], [11, 90]);
  for (const requests of [21, 31]) {
    assert.deepEqual(shownOf(found), { events: events(2), from: 70 }, "until the search has come as far");
    found = await further(ask, found);
    assert.equal(asked.length, requests);
  }
  found = await further(ask, found);
  assert.equal(shownOf(found).events.length, 2);
  assert.deepEqual([asked.length, shownOf(found).from], [41, 60]);
});

Deno.test("a search goes on where an error ended it", async () => {
  const { asked, ask } = answering(farBack);
  let fails = true;
  /** @type {(parameters: any) => Promise<any>} */
  const failing = (parameters) => {
    if (asked.length !== 5 || !fails) return ask(parameters);
    fails = false;
    return Promise.reject(new Error("away"));
  };
  /** @type {any} */
  let kept;
  const keep = (/** @type {any} */ progress) => kept = progress;
  const day = { events: events(2), from: 70, since: 70, cursor: null, known: { events: [], from: Infinity } };
  await assert.rejects(further(failing, day, keep), /away/);
  assert.deepEqual([asked.length, kept.from, kept.cursor, kept.events.length], [5, 96, "x", 1]);
  assert.deepEqual(shownOf(kept), { events: events(2), from: 70 });
  kept = await further(failing, kept, keep);
  assert.deepEqual([asked.length, kept.from, asked[5]], [15, 86, { cursor: "x" }]);
});

Deno.test("a search from the beginning passes events that came meanwhile and all that are known", async () => {
  const { ask } = answering([
    { events: events(50), searched_from: 90, next_cursor: "a" },
    { events: events(2), searched_from: 50, next_cursor: "b" },
    { events: events(1), searched_from: 40, next_cursor: null },
  ]);
  assert.equal((await searched(ask, 0, { events: events(2), from: 60 })).events.length, 52);
});
