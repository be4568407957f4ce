import assert from "node:assert/strict";
import { instantOf, parseInstant, typedInstant } from "../../light_scheduler/web/static/instants.js";
import { previewOf } from "../../light_scheduler/web/static/next_firings.js";

const NOW = Date.UTC(2030, 0, 31, 12);
const NOON_AND_A_BIT = NOW + 34 * 60_000 + 59_000;

Deno.test("instants are typed in several ways", () => {
  assert.equal(parseInstant("", NOW), null);
  assert.equal(parseInstant("1895313600000", NOW), 1895313600000);
  assert.equal(parseInstant("+2h", NOW), NOW + 7_200_000);
  assert.equal(parseInstant(" -1.5d ", NOW), NOW - 129_600_000);
  assert.equal(parseInstant("2030-01-31T12:00Z", 0), NOW);
  assert.equal(parseInstant("2030-01-31 14:00+02:00", 0), NOW);
  assert.equal(parseInstant("2030-01-31", 0), new Date(2030, 0, 31).getTime());
});

Deno.test("what is no instant is refused with examples", () => {
  for (const typed of ["soon", "12", "+2", "2030-13-01", "31.1.2030"]) {
    assert.throws(() => parseInstant(typed, NOW), /is no instant. Write/);
  }
});

Deno.test("an address has an instant of the years that there are, or none", () => {
  for (const text of [null, "", "0", "-5", "<img>", "NaN"]) assert.equal(instantOf(text), null);
  assert.equal(instantOf(String(NOW)), NOW);
  for (const text of ["1e300", "Infinity", "253402300800000"]) {
    const at = instantOf(text);
    assert.equal(at, 253_402_300_799_999);
    assert.equal(at && typedInstant(at, true), "9999-12-31T23:59Z");
  }
});

Deno.test("an instant is shown as it can be typed, to the minute", () => {
  assert.equal(typedInstant(NOON_AND_A_BIT, true), "2030-01-31T12:34Z");
  for (const isUtc of [true, false]) {
    for (let hour = 0; hour < 366 * 24; hour += 1) {
      const at = NOW + hour * 3_600_000;
      assert.equal(parseInstant(typedInstant(at, isUtc), 0), at);
    }
  }
});

/**
 * @param {import("../../light_scheduler/web/static/types.d.ts").Trigger} trigger
 * @param {Record<string, unknown>} [fields]
 * @returns {any}
 */
const pending = (trigger, fields = {}) => ({ tenant: "t", id: "a", trigger, due: NOW + 100, sequence: 3, ...fields });

Deno.test("a preview goes on where the series is", () => {
  const cron = { cron: "0 9 * * *", cron_dialect: "unix", timezone: "UTC" };
  assert.deepEqual(previewOf(pending(cron), 10, NOW), {
    body: { tenant: "t", id: "a", trigger: cron },
    parameters: { count: 10, from: NOW + 99 },
  });
  const every = { every: 1_000, mode: "fixed-rate", jitter: 50 };
  assert.deepEqual(previewOf(pending(every), 10, NOW), {
    body: { tenant: "t", id: "a", trigger: { every: 1_000, mode: "fixed-rate", start: NOW + 100 } },
    parameters: { count: 10, from: NOW },
  });
});

Deno.test("a preview ends with the last firing", () => {
  const cron = { cron: "@daily", max_firings: 4 };
  assert.equal(previewOf(pending(cron), 10, NOW)?.parameters.count, 2);
  assert.equal(previewOf(pending(cron, { sequence: 5 }), 10, NOW), null);
});

Deno.test("what depends on completions, or fires once, has no preview", () => {
  assert.equal(previewOf(pending({ at: NOW }), 10, NOW), null);
  assert.equal(previewOf(pending({ every: 1, mode: "fixed-delay" }), 10, NOW), null);
});
