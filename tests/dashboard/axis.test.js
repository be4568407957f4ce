import assert from "node:assert/strict";
import { brief, labelsOf, linesTo } from "../../light_scheduler/web/static/axis.js";
import { barsOf, LENGTHS, rangeFrom } from "../../light_scheduler/web/static/intervals.js";

Deno.test("lines are at round numbers, and the highest is not below what is shown", () => {
  const cases = /** @type {[number, number[]][]} */ ([
    [0, [0, 1]],
    [1, [0, 1]],
    [3, [0, 1, 2, 3]],
    [7, [0, 2, 4, 6, 8]],
    [40, [0, 10, 20, 30, 40]],
    [41, [0, 20, 40, 60]],
    [1_700, [0, 500, 1_000, 1_500, 2_000]],
  ]);
  for (const [most, lines] of cases) assert.deepEqual(linesTo(most), lines);
});

Deno.test("numbers on an axis are short", () => {
  assert.deepEqual([0, 950, 1_500, 20_000, 2_500_000].map(brief), ["0", "950", "1.5k", "20k", "2.5M"]);
});

/** @type {(by: import("../../light_scheduler/web/static/intervals.js").By, at: number, room: number, offset: number) => string[]} */
const labels = (by, at, room, offset) => {
  const { from, to } = rangeFrom(at, by);
  return labelsOf(barsOf([], by, from, to), by, room, () => offset).map(({ label }) => label);
};

Deno.test("labels are at round times of the user's clock, as many as have room", () => {
  const at = Date.UTC(2030, 0, 31, 20, 7);
  assert.deepEqual(labels("hour", at, 8, 0), ["21:00", "02-01", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00"]);
  assert.deepEqual(labels("hour", at, 4, 60), ["02-01", "06:00", "12:00", "18:00"]);
  assert.deepEqual(labels("minute", at, 4, 0), ["20:15", "20:30", "20:45", "21:00"]);
  assert.deepEqual(labels("day", at, 3, 600), ["01-31", "02-10", "02-20"]);
});

Deno.test("labels do not crowd however long the range is, and have the year where a day alone would not say which", () => {
  const begin = Date.UTC(2030, 0, 31);
  for (const by of /** @type {const} */ (["minute", "hour", "day"])) {
    const bars = barsOf([], by, begin, begin + 120 * LENGTHS[by]);
    for (const room of [4, 5, 20]) assert.ok(labelsOf(bars, by, room, () => 0).length <= room + 1, `${by}, ${room}`);
  }
  const years = barsOf([], "day", begin, begin + 3_660 * LENGTHS.day);
  assert.deepEqual(labelsOf(years, "day", 4, () => 0).map(({ label }) => label), ["2030-01", "2035-01", "2040-01"]);
});
