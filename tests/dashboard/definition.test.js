import assert from "node:assert/strict";
import { againOf, isAdmin, labelsOf, mayWrite, triggerOf } from "../../light_scheduler/web/static/definition.js";

const NOW = Date.UTC(2030, 0, 31, 12);
const TYPED = { at: "", every: "", cron: "", dialect: "unix", timezone: "" };

Deno.test("what is typed becomes a trigger", () => {
  assert.deepEqual(triggerOf({ ...TYPED, kind: "once", at: "+1h" }, NOW), { at: NOW + 3_600_000 });
  assert.deepEqual(triggerOf({ ...TYPED, kind: "every", every: " 15m " }, NOW), { every: "15m" });
  const cron = { cron: "0 9 * * *", cron_dialect: "unix", timezone: "UTC" };
  assert.deepEqual(triggerOf({ ...TYPED, kind: "cron", cron: "0 9 * * *" }, NOW), cron);
});

Deno.test("what is missing is named", () => {
  for (const kind of /** @type {const} */ (["once", "every", "cron"])) {
    assert.throws(() => triggerOf({ ...TYPED, kind }, NOW), /^Error: Enter /);
  }
  assert.throws(() => labelsOf("team"), /The label "team" has no value/);
});

Deno.test("labels are pairs", () => {
  assert.deepEqual(labelsOf(" team = billing,kind=a=b, "), { team: "billing", kind: "a=b" });
});

/**
 * @param {Record<string, unknown>} [fields]
 * @returns {any}
 */
const detail = (fields = {}) => ({
  state: "pending",
  due: NOW,
  sequence: 1,
  trigger: { at: NOW },
  target: { topic: "t", key: null, partition: null },
  labels: {},
  priority: 100,
  ttl: null,
  misfire: "coalesce",
  misfire_grace: 30_000,
  acknowledgement: null,
  awaiting: [],
  headers: [],
  payload: { text: "x" },
  ...fields,
});

Deno.test("what was cancelled can be scheduled again as it was", () => {
  const headers = [{ name: "a", value: { text: "1" } }, { name: "b", value: null }];
  assert.deepEqual(againOf(detail({ headers, state: "paused", due: null, ttl: 5 })), {
    trigger: { at: NOW },
    target: { topic: "t", key: null, headers: { a: "1", b: null } },
    payload: { text: "x" },
    labels: {},
    priority: 100,
    misfire: "coalesce",
    misfire_grace: 30_000,
    ttl: 5,
    paused: true,
    on_past: "reject",
    on_conflict: "fail",
  });
  const payload = { base64: "/w==", masked: true };
  assert.deepEqual(againOf(detail({ payload }))?.payload, { base64: "/w==" });
  const series = againOf(detail({ trigger: { every: 5, mode: "fixed-rate" }, sequence: 7 }));
  assert.deepEqual(series?.trigger, { every: 5, mode: "fixed-rate", start: NOW });
  assert.equal(series && "on_past" in series, false);
  const cron = { cron: "0 9 * * *", cron_dialect: "unix", timezone: "UTC", jitter: 5 };
  assert.deepEqual(againOf(detail({ trigger: cron, state: "paused", due: null }))?.trigger, cron);
  const target = { topic: "t", key: null, partition: null, partition_key: "k" };
  assert.deepEqual(againOf(detail({ target }))?.target, { topic: "t", key: null, partition_key: "k", headers: {} });
});

Deno.test("what would come back differently cannot be undone", () => {
  const binary = { name: "a", value: { base64: "/w==" } };
  const text = { name: "a", value: { text: "x" } };
  assert.equal(againOf(detail({ headers: [binary] })), null);
  assert.equal(againOf(detail({ headers: [text, text] })), null);
  assert.equal(againOf(detail({ awaiting: [{}] })), null);
  assert.equal(againOf(detail({ trigger: { every: 5, max_firings: 9 }, sequence: 2 })), null);
  const target = { topic: "t", key: null, partition: null, partition_key_base64: "/w==" };
  assert.equal(againOf(detail({ target })), null);
});

Deno.test("a series whose next planned time is not known cannot be undone", () => {
  for (const mode of ["fixed-rate", "fixed-delay"]) {
    assert.equal(againOf(detail({ trigger: { every: 5, mode }, state: "paused", due: null })), null);
    assert.equal(againOf(detail({ trigger: { every: 5, mode, jitter: 2 } })), null);
  }
  assert.equal(againOf(detail({ trigger: { every: 5, mode: "fixed-rate" }, triggered: [NOW] })), null);
  for (const sequence of [1, 2]) {
    assert.equal(againOf(detail({ trigger: { backoff: { intervals: [5, 9] } }, sequence })), null);
  }
});

Deno.test("only writers and admins may change schedules", () => {
  /** @type {(role: any) => boolean} */
  const may = (role) => mayWrite({ role, name: "", tenants: null, version: "", app_id: "", commands_topics: {} });
  assert.deepEqual(["metrics", "read", "write", "admin"].map(may), [false, false, true, true]);
});

Deno.test("an admin is one for all tenants", () => {
  const identity = /** @type {any} */ ({ role: "admin", tenants: null });
  assert.equal(isAdmin(identity), true);
  assert.equal(isAdmin({ ...identity, tenants: ["shop"] }), false);
  assert.equal(isAdmin({ ...identity, role: "write" }), false);
});
