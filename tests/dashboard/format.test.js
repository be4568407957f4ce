import assert from "node:assert/strict";
import {
  count,
  duration,
  local,
  plural,
  rate,
  relative,
  size,
  time,
  trigger,
  utc,
} from "../../light_scheduler/web/static/format.js";

const NOON = Date.UTC(2030, 0, 31, 12);

Deno.test("numbers have separators, and what is not known is a dash", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(count(null), "–");
  assert.deepEqual([0, 0.44, 12.55, 1240.4].map(rate), ["0", "0.4", "12.6", "1,240"]);
  assert.equal(rate(null), "–");
  assert.deepEqual([plural(1, "worker"), plural(2, "worker")], ["1 worker", "2 workers"]);
});

Deno.test("sizes have the largest unit that fits", () => {
  assert.deepEqual([0, 1023, 1536, 1 << 20].map(size), ["0 B", "1,023 B", "1.5 KiB", "1 MiB"]);
});

Deno.test("durations have their two largest units", () => {
  const cases = {
    0: "0 ms",
    999: "999 ms",
    1_500: "1.5 s",
    12_400: "12 s",
    125_000: "2 min 5 s",
    10_800_000: "3 h",
    100_800_000: "1 d 4 h",
  };
  for (const [ms, text] of Object.entries(cases)) assert.equal(duration(Number(ms)), text);
  assert.equal(duration(-1_500), "-1.5 s");
});

Deno.test("an instant is in UTC, in local time with its offset, or relative", () => {
  assert.equal(utc(NOON), "2030-01-31 12:00:00 UTC");
  assert.equal(utc(NOON + 7), "2030-01-31 12:00:00.007 UTC");
  assert.match(local(NOON), /^2030-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d$/);
  assert.equal(relative(NOON + 65_900, NOON), "in 1 min 5 s");
  assert.equal(relative(NOON - 3_000, NOON), "3 s ago");
  assert.equal(relative(NOON + 400, NOON), "now");
  assert.equal(time(null, "utc", NOON), "–");
  assert.equal(time(NOON, "utc", 0), utc(NOON));
});

Deno.test("an instant that no calendar has is shown as the number that it is", () => {
  assert.equal(utc(1e18), "1000000000000000000 ms");
});

Deno.test("each kind of trigger is told in words", () => {
  assert.equal(trigger({ at: NOON }, "utc", 0), "once, 2030-01-31 12:00:00 UTC");
  assert.equal(trigger({ every: 300_000, mode: "fixed-rate" }, "utc", 0), "every 5 min");
  assert.equal(trigger({ every: 1_000, mode: "fixed-delay" }, "utc", 0), "every 1 s after completion");
  assert.equal(
    trigger({ cron: "0 9 * * *", cron_dialect: "unix", timezone: "UTC" }, "utc", 0),
    "cron 0 9 * * * (unix, UTC)",
  );
  assert.equal(trigger({ backoff: { intervals: [1_000, 4_000] } }, "utc", 0), "backoff 1 s, 4 s");
  assert.equal(trigger({ backoff: { initial: 1_000, factor: 2 } }, "utc", 0), "backoff from 1 s, × 2");
});
