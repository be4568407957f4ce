import assert from "node:assert/strict";
import { isNearlyFull, rowsOf, rulesInWords } from "../../light_scheduler/web/static/tenant_rows.js";

/** @type {(name: string, rules?: object, state?: string) => any} */
const tenant = (name, rules = {}, state = "active") => ({ name, rules, state });

/** @type {(tenants: [string, number][], fields?: object) => any} */
const overview = (tenants, fields = {}) => ({
  tenants: tenants.map(([tenant, pending]) => ({ tenant, pending })),
  complete: true,
  missing: [],
  ...fields,
});

Deno.test("tenants with rules and tenants with schedules are one list", () => {
  const rows = rowsOf(
    [tenant("shop", { max_pending: 10 }, "paused"), tenant("idle")],
    overview([["shop", 9], ["art", 2]]),
  );
  assert.deepEqual(rows.map(({ name, state, pending, quota }) => [name, state, pending, quota]), [
    ["art", "active", 2, null],
    ["idle", "active", 0, null],
    ["shop", "paused", 9, 10],
  ]);
  assert.deepEqual(rows.map(isNearlyFull), [false, false, true]);
});

Deno.test("a tenant that is not counted has no number, rather than none pending", () => {
  const missing = [{ topic: "c", partition: 0, worker: null, reason: "no worker has it" }];
  for (const fields of [{ complete: false }, { missing }]) {
    assert.equal(rowsOf([tenant("idle")], overview([], fields))[0].pending, null);
  }
});

Deno.test("rules are told in words", () => {
  assert.deepEqual(rulesInWords({}), []);
  const rules = {
    targets: ["a", "b-*"],
    max_payload_bytes: 65_536,
    commands_per_second: 1_500,
    firings_per_second: 0.5,
  };
  assert.deepEqual(rulesInWords({ ...rules, over_rate: "delay", weight: 3, max_pending: 9 }), [
    ["targets", "a, b-*"],
    ["payload", "≤ 64 KiB"],
    ["commands", "≤ 1,500 a second, then delay"],
    ["firings", "≤ 0.5 a second"],
    ["weight", "3"],
  ]);
});
