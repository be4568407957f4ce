/**
 * The tenants with their rules, the use of their quotas, and whether they fire.
 * @module
 */

import { request } from "./api.js";
import { isAdmin } from "./definition.js";
import { ask } from "./dialog.js";
import { h, refresh, replace } from "./elements.js";
import { count, MISSING, plural } from "./format.js";
import { poll } from "./poll.js";
import { isNearlyFull, rowsOf, rulesInWords } from "./tenant_rows.js";
import { address, badge, empty, failure, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").Tenant} Tenant */
/** @typedef {import("./tenant_rows.js").Row} Row */
/** @typedef {"pause" | "resume"} Verb */

const EVERY_MS = 5_000;
const COLUMNS = [
  { name: "Tenant" },
  { name: "State" },
  { name: "Pending", number: true },
  { name: "Rules" },
  { name: "Changed" },
];

/**
 * @param {Context} context
 * @returns {import("./types.d.ts").View}
 */
export function tenantList({ identity, signal }) {
  const mayChange = isAdmin(identity);
  const answers = h("div", {});
  /** @type {Row[]} */
  let rows = [];
  // One listener for all buttons: rows are redrawn, and their elements are reused for other rows.
  const list = h("div", { onclick: clicked }, loading());

  async function show() {
    try {
      const [{ tenants }, overview] = await Promise.all(
        ["tenants", "overview"].map((name) => request(`/api/v1/${name}`, { signal })),
      );
      rows = rowsOf(tenants, overview);
      refresh(list, draw(rows, mayChange));
    } catch (error) {
      if (!signal.aborted) refresh(list, failure(error));
    }
  }

  /** @param {MouseEvent} event */
  async function clicked(event) {
    const { tenant: name, verb } = /** @type {HTMLElement} */ (event.target).dataset;
    const row = rows.find((each) => each.name === name);
    if (!row || (verb !== "pause" && verb !== "resume")) return;
    if (!await ask(...question(row, verb))) return;
    try {
      /** @type {Tenant} */
      const { state } = await request(`/api/v1/tenants/${encodeURIComponent(row.name)}/${verb}`, { method: "POST" });
      const text = ["Tenant ", userText(row.name), ` is ${state}. All workers follow within 2 seconds.`];
      replace(answers, h("div", { class: "notice good", role: "status" }, h("p", {}, text)));
    } catch (error) {
      replace(answers, failure(error));
    }
    await show();
  }

  void poll(show, () => EVERY_MS, signal);
  return { title: "Tenants", node: h("div", {}, answers, list) };
}

/**
 * Return the arguments of the confirmation before a tenant is paused or resumed.
 * @param {Row} row
 * @param {Verb} verb
 * @returns {Parameters<typeof ask>}
 */
function question({ name, state, pending }, verb) {
  const has = pending === null ? [] : [h("p", {}, `It has ${plural(pending, "pending schedule")}.`)];
  if (verb === "pause") {
    const meaning = "None of its schedules fires until you resume it. Its commands still take effect.";
    return ["Pause this tenant?", [h("p", {}, userText(name)), h("p", {}, meaning), ...has], {
      yes: "Pause tenant",
      isDangerous: true,
    }];
  }
  const meaning = state === "deleted"
    ? "Its commands take effect again. Schedules that were removed stay removed."
    : "Its schedules fire again. Missed firings follow their misfire policies.";
  return ["Resume this tenant?", [h("p", {}, userText(name)), h("p", {}, meaning), ...has], { yes: "Resume tenant" }];
}

/**
 * @param {Row[]} rows
 * @param {boolean} mayChange
 */
function draw(rows, mayChange) {
  if (!rows.length) return [empty("No tenant has rules or schedules. A tenant needs no set-up.")];
  const columns = mayChange ? [...COLUMNS, { name: "Action" }] : COLUMNS;
  return [
    table("Tenants", columns, rows.map((each) => [...row(each), ...(mayChange ? [action(each)] : [])])),
    h(
      "p",
      { class: "note" },
      "Set rules with light-scheduler tenants set. max_pending holds for each commands topic, rates for all of them together.",
    ),
  ];
}

/** @param {Row} each */
function row(each) {
  const { name, state, tenant } = each;
  const rules = rulesInWords(tenant?.rules ?? {});
  const isUnreadable = tenant?.is_readable === false;
  return [
    h("a", { href: address("schedules", { tenant: name }) }, userText(name)),
    [
      badge(state),
      isUnreadable && h("p", { class: "warning" }, "A newer version wrote its rules: nothing fires on this worker."),
    ],
    usage(each),
    rules.length
      ? rules.map(([title, value]) => h("p", {}, h("span", { class: "note" }, `${title}: `), userText(value, 400)))
      : MISSING,
    tenant ? [instant(tenant.changed_at), h("p", { class: "note" }, "by ", userText(tenant.changed_by))] : MISSING,
  ];
}

/** @param {Row} each */
function usage(each) {
  const { pending, quota } = each;
  if (quota === null) return count(pending);
  const isFull = isNearlyFull(each);
  return [
    h("span", { class: isFull ? "warning" : null }, `${count(pending)} of ${count(quota)}`),
    h("progress", {
      class: isFull ? "full" : null,
      max: quota,
      value: Math.min(pending ?? 0, quota),
      "aria-label": "Used of the quota",
    }),
  ];
}

/** @param {Row} row */
function action({ name, state }) {
  const verb = state === "active" ? "pause" : "resume";
  const label = verb === "pause" ? "Pause" : "Resume";
  return h(
    "button",
    { type: "button", "data-tenant": name, "data-verb": verb, "aria-label": `${label} ${name}` },
    label,
  );
}
