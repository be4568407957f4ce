/**
 * The tenants with rules, with a pause or deletion, or with schedules. Pure.
 * @module
 */

import { count, rate, size } from "./format.js";

/** @typedef {import("./types.d.ts").Overview} Overview */
/** @typedef {import("./types.d.ts").Tenant} Tenant */
/** @typedef {import("./types.d.ts").TenantRules} TenantRules */
/** @typedef {{ name: string, state: string, pending: number | null, quota: number | null, tenant: Tenant | null }} Row
 *   `pending` is null if it is not known, `tenant` if it has no rules and was never stopped. */

/** Number of tenants that an overview names. */
const MOST_NAMED = 100;

/** Share of a quota above which it is nearly used up. */
const NEARLY = 0.9;

/**
 * Return all known tenants, by name.
 * @param {Tenant[]} tenants
 * @param {Overview} overview
 * @returns {Row[]}
 */
export function rowsOf(tenants, overview) {
  const isWhole = overview.complete && !overview.missing.length && overview.tenants.length < MOST_NAMED;
  const pending = new Map(overview.tenants.map((each) => [each.tenant, each.pending]));
  const ruled = new Map(tenants.map((each) => [each.name, each]));
  return [...new Set([...ruled.keys(), ...pending.keys()])].sort().map((name) => {
    const tenant = ruled.get(name) ?? null;
    return {
      name,
      state: tenant?.state ?? "active",
      pending: pending.get(name) ?? (isWhole ? 0 : null),
      quota: tenant?.rules.max_pending ?? null,
      tenant,
    };
  });
}

/**
 * Return whether a tenant has nearly used up its quota of pending schedules.
 * @param {Row} row
 */
export function isNearlyFull({ pending, quota }) {
  return pending !== null && quota !== null && pending >= NEARLY * quota;
}

/**
 * Return rules as names and values in words. The quota of pending schedules is shown separately.
 * @param {TenantRules} rules
 * @returns {[string, string][]}
 */
export function rulesInWords(rules) {
  /** @type {[string, string | null | undefined][]} */
  const words = [
    ["targets", rules.targets?.join(", ")],
    ["default target", rules.default_target],
    ["distribution", rules.distribution],
    ["payload", rules.max_payload_bytes == null ? null : `≤ ${size(rules.max_payload_bytes)}`],
    ["commands", perSecond(rules.commands_per_second, rules.over_rate ?? "reject")],
    ["firings", perSecond(rules.firings_per_second, null)],
    ["weight", rules.weight == null ? null : count(rules.weight)],
  ];
  return words.flatMap(([name, value]) => (value == null ? [] : [[name, value]]));
}

/**
 * @param {number | null | undefined} most
 * @param {string | null} overRate
 */
function perSecond(most, overRate) {
  if (most == null) return null;
  return `≤ ${rate(most)} a second${overRate === null ? "" : `, then ${overRate}`}`;
}
