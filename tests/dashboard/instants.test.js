import assert from "node:assert/strict";
import { instantOf, parseInstant, typedInstant } from "../../light_scheduler/web/static/instants.js";
import { firingsOf, previewOf } from "../../light_scheduler/web/static/next_firings.js";

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
const pending = (trigger, fields = {}) => ({
  tenant: "t",
  id: "a",
  state: "pending",
  trigger,
  due: NOW + 100,
  sequence: 3,
  accepted_at: NOW - 2 * 86_400_000,
  ...fields,
});

/**
 * @param {import("../../light_scheduler/web/static/types.d.ts").Trigger} trigger
 * @param {Record<string, unknown>} [fields]
 */
const paused = (trigger, fields = {}) => pending(trigger, { state: "paused", due: null, ...fields });

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

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

Deno.test("a preview begins before jitter moved the next firing, and what was before that is left out", () => {
  const daily = { cron: "0 9 * * *", cron_dialect: "unix", timezone: "UTC", jitter: 10 * MINUTE };
  const schedule = pending(daily, { due: 1893488407559, accepted_at: 0 });
  const { count, from } = previewOf(schedule, 10, NOW)?.parameters ?? { count: 0, from: 0 };
  assert.equal(from, 1893488407558 - 10 * MINUTE);
  assert.equal(count, 20);
  const next = [1893402000001, 1893488407559, 1893575048963, 1893661200123];
  assert.deepEqual(firingsOf(schedule, next, 10, NOW), next.slice(1));
  const last = pending({ ...daily, max_firings: 4 }, { due: 1893488407559 });
  assert.deepEqual(firingsOf(last, next, 10, NOW), next.slice(1, 3));
});

Deno.test("more is asked for the more firings jitter can move past each other, as far as a preview goes", () => {
  const count = (/** @type {import("../../light_scheduler/web/static/types.d.ts").Trigger} */ trigger) =>
    previewOf(pending({ jitter: HOUR, ...trigger }), 10, NOW)?.parameters.count;
  assert.equal(count({ cron: "@hourly" }), 70);
  assert.equal(count({ cron: " 0 0 9 * * ? " }), 1_000);
  assert.equal(count({ every: 15 * MINUTE, start: NOW }), 14);
});

Deno.test("no firing is planned from before a series was accepted", () => {
  const hourly = { cron: "0 * * * *", jitter: 30 * MINUTE };
  const from = (/** @type {Record<string, unknown>} */ fields) =>
    previewOf(paused(hourly, fields), 10, NOW)?.parameters.from;
  assert.equal(from({}), NOW - 30 * MINUTE);
  assert.equal(from({ accepted_at: NOW - MINUTE }), NOW - MINUTE);
  assert.equal(from({ accepted_at: NOW + MINUTE }), NOW);
  assert.deepEqual(firingsOf(paused(hourly), [NOW, NOW + 1], 10, NOW), [NOW + 1]);
});

Deno.test("a paused fixed rate keeps its times", () => {
  const accepted_at = NOW - 15 * MINUTE;
  const hourly = { every: HOUR, mode: "fixed-rate", jitter: 5 };
  assert.deepEqual(previewOf(paused(hourly, { accepted_at }), 10, NOW), {
    body: { tenant: "t", id: "a", trigger: { every: HOUR, mode: "fixed-rate", start: accepted_at } },
    parameters: { count: 10, from: NOW },
  });
  const started = { ...hourly, start: NOW - 90 * MINUTE };
  assert.deepEqual(previewOf(paused(started, { accepted_at }), 10, NOW), {
    body: { tenant: "t", id: "a", trigger: started },
    parameters: { count: 11, from: NOW - 5 },
  });
});

Deno.test("a series that is not paused and has no next firing has had its last", () => {
  const ended = pending({ every: HOUR, end: NOW - 1 }, { state: "awaiting", due: null });
  assert.equal(previewOf(ended, 10, NOW), null);
  assert.deepEqual(firingsOf(ended, [], 10, NOW), []);
  assert.deepEqual(firingsOf(pending({ at: NOW }), [], 10, NOW), [NOW + 100]);
});
