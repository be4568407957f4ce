import assert from "node:assert/strict";
import { extended } from "../../light_scheduler/web/static/bar_selection.js";
import { barsOf, LENGTHS, rangeFrom } from "../../light_scheduler/web/static/intervals.js";
import { indexAt, parametersOf, rangeOf, zoomedInto, zoomedOut } from "../../light_scheduler/web/static/zoom.js";

const { minute: MINUTE, hour: HOUR, day: DAY } = LENGTHS;
const MIDNIGHT = Date.UTC(2030, 0, 31);
const NOON = MIDNIGHT + 12 * HOUR;

Deno.test("a range has whole intervals, the shortest that fit", () => {
  assert.deepEqual(rangeOf(NOON + 1, NOON + 2 * HOUR, null), { by: "minute", from: NOON, to: NOON + 2 * HOUR });
  assert.deepEqual(rangeOf(NOON, NOON + 2 * HOUR + 1, null), { by: "hour", from: NOON, to: NOON + 3 * HOUR });
  assert.deepEqual(rangeOf(NOON, NOON + 5 * DAY, null), { by: "hour", from: NOON, to: NOON + 5 * DAY });
  assert.deepEqual(rangeOf(NOON, NOON + 5 * DAY + 1, null), { by: "day", from: MIDNIGHT, to: MIDNIGHT + 6 * DAY });
  assert.deepEqual(rangeOf(NOON, NOON + 1, null), { by: "minute", from: NOON, to: NOON + MINUTE });
});

Deno.test("intervals that are asked for are kept, unless there would be too many", () => {
  assert.equal(rangeOf(NOON, NOON + HOUR, "hour").by, "hour");
  assert.equal(rangeOf(NOON, NOON + HOUR, "day").by, "day");
  assert.equal(rangeOf(NOON, NOON + 3 * HOUR, "minute").by, "hour");
  assert.equal(rangeOf(NOON, NOON + 30 * DAY, "minute").by, "day");
  assert.deepEqual(rangeOf(MIDNIGHT, MIDNIGHT + 1_000 * DAY, "day").to, MIDNIGHT + 1_000 * DAY);
});

Deno.test("bars that are selected from either side are zoomed into, the empty ones among them included", () => {
  const bars = barsOf([], "day", MIDNIGHT, MIDNIGHT + 30 * DAY);
  const wanted = { by: "hour", from: MIDNIGHT + 2 * DAY, to: MIDNIGHT + 5 * DAY };
  assert.deepEqual(zoomedInto(bars, 2, 4), wanted);
  assert.deepEqual(zoomedInto(bars, 4, 2), wanted);
  assert.deepEqual(zoomedInto(bars, 0, 0), { by: "hour", from: MIDNIGHT, to: MIDNIGHT + DAY });
  assert.equal(zoomedInto(bars, 0, 29).by, "day");
});

Deno.test("zooming out leads from minutes over hours and days to a year, around the middle", () => {
  const past = 0;
  const minutes = { by: /** @type {const} */ ("minute"), from: NOON, to: NOON + 3 * MINUTE };
  const hour = zoomedOut(minutes, past);
  assert.deepEqual(hour, { by: "minute", from: NOON - 29 * MINUTE, to: NOON + 31 * MINUTE });
  const day = hour && zoomedOut(hour, past);
  assert.deepEqual(day, { by: "hour", from: MIDNIGHT, to: MIDNIGHT + DAY });
  const month = day && zoomedOut(day, past);
  assert.deepEqual(month, { by: "day", from: MIDNIGHT - 15 * DAY, to: MIDNIGHT + 15 * DAY });
  const year = month && zoomedOut(month, past);
  assert.equal(year && (year.to - year.from) / DAY, 366);
  assert.equal(year && zoomedOut(year, past), null);
});

Deno.test("what begins now does not begin in the past when it is zoomed out", () => {
  const now = NOON + 20 * MINUTE;
  const range = { by: /** @type {const} */ ("minute"), ...rangeFrom(now, "minute") };
  assert.deepEqual(zoomedOut(range, now), { by: "hour", from: NOON, to: NOON + DAY });
  const earlier = { by: /** @type {const} */ ("minute"), from: NOON - HOUR, to: NOON };
  assert.deepEqual(zoomedOut(earlier, now), { by: "hour", from: NOON - HOUR, to: NOON + 23 * HOUR });
});

Deno.test("a whole range contains what it was zoomed out of", () => {
  for (const by of /** @type {const} */ (["minute", "hour", "day"])) {
    for (const bars of [1, 2, 7, 24, 59, 60, 119]) {
      const from = Math.floor((NOON + 7 * MINUTE) / LENGTHS[by]) * LENGTHS[by];
      const range = { by, from, to: from + bars * LENGTHS[by] };
      for (const now of [0, from, from + HOUR, range.to + DAY]) {
        const out = zoomedOut(range, now);
        assert.ok(out && out.from <= range.from && out.to >= range.to, JSON.stringify({ range, now, out }));
        assert.equal(out.from % LENGTHS[out.by], 0);
      }
    }
  }
});

Deno.test("an address names the end of a range only where it is not the usual one", () => {
  assert.deepEqual(parametersOf({ by: "hour", from: NOON, to: NOON + DAY }), { by: "hour", from: NOON });
  assert.deepEqual(parametersOf({ by: "hour", from: NOON, to: NOON + HOUR }), {
    by: "hour",
    from: NOON,
    to: NOON + HOUR,
  });
});

Deno.test("a place is in a bar, those beyond the edges in the first and last", () => {
  const places = { left: 44, step: 10, bars: 24 };
  assert.deepEqual([0, 44, 53.9, 54, 283, 284, 999].map((x) => indexAt(x, places)), [0, 0, 0, 1, 23, 23, 23]);
});

Deno.test("a selection grows and shrinks by one bar, and stays within them", () => {
  assert.deepEqual(extended({ first: 1, last: 1 }, 1, 3), { first: 1, last: 2 });
  assert.deepEqual(extended({ first: 1, last: 2 }, 1, 3), { first: 1, last: 2 });
  assert.deepEqual(extended({ first: 1, last: 1 }, -1, 3), { first: 1, last: 0 });
  assert.deepEqual(extended({ first: 1, last: 0 }, -1, 3), { first: 1, last: 0 });
});
