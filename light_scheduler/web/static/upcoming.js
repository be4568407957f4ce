/**
 * What is ahead: how many schedules of a tenant are due in each minute, hour or day. A bar opens into shorter intervals, and in
 * the end into its schedules.
 * @module
 */

import { queryString, request } from "./api.js";
import { barChart, moment } from "./bar_chart.js";
import { h, replace } from "./elements.js";
import { count, plural } from "./format.js";
import { barsOf, byTopic, rangeFrom } from "./intervals.js";
import { tenantField } from "./tenants.js";
import { address, choice, empty, failure, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").Upcoming} Upcoming */
/** @typedef {import("./intervals.js").By} By */

const HEIGHT = 260;
const INTERVALS = { minute: "Minutes", hour: "Hours", day: "Days" };

/**
 * @param {Context} context
 * @returns {import("./types.d.ts").View}
 */
export function upcoming(context) {
  const results = h("div", {}, loading());
  void fillIn(results, context);
  return { title: "Upcoming", node: h("div", {}, filters(context), results) };
}

/**
 * Return what the address asks for.
 * @param {Context} context
 * @returns {{ tenant: string, by: By, from: number }}
 */
function asked({ query, identity }) {
  const by = query.get("by") ?? "";
  const from = Number(query.get("from") ?? NaN);
  return {
    tenant: query.get("tenant") || (identity.tenants?.[0] ?? "default"),
    by: by === "minute" || by === "day" ? by : "hour",
    from: Number.isFinite(from) && from > 0 ? from : Date.now(),
  };
}

/** @param {Context} context */
function filters(context) {
  const { tenant, by } = asked(context);
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: show },
    tenantField(context.identity, tenant),
    choice("Intervals", INTERVALS, by, { name: "by" }),
    h("button", { class: "main" }, "Show from now"),
  );
}

/** @param {SubmitEvent} event */
function show(event) {
  event.preventDefault();
  const data = new FormData(/** @type {HTMLFormElement} */ (event.target));
  const values = Object.fromEntries([...data].map(([name, value]) => [name, String(value).trim()]));
  const next = address("upcoming", values);
  if (next === location.hash) dispatchEvent(new Event("preferences"));
  else location.hash = next;
}

/**
 * @param {Element} results
 * @param {Context} context
 */
async function fillIn(results, context) {
  const { tenant, by, from } = asked(context);
  const path = `/api/v1/tenants/${encodeURIComponent(tenant)}/upcoming`;
  const range = rangeFrom(from, by);
  try {
    /** @type {Upcoming} */
    const answer = await request(path + queryString({ by, due_from: range.from, due_to: range.to }), {
      signal: context.signal,
    });
    replace(results, ...report(answer, tenant));
  } catch (error) {
    if (!context.signal.aborted) replace(results, failure(error));
  }
}

/**
 * @param {Upcoming} answer
 * @param {string} tenant
 */
function report({ by, due_from: from, due_to: to, counts, pending }, tenant) {
  const bars = barsOf(counts, by, from, to);
  const due = bars.reduce((sum, bar) => sum + bar.count, 0);
  const chart = barChart(HEIGHT);
  chart.show({ bars, by, tenant, now: Date.now() });
  const all = pending.reduce((sum, each) => sum + each.count, 0);
  const go = (/** @type {number} */ start) => address("upcoming", { tenant, by, from: start });
  return [
    h("p", {}, `${plural(due, "schedule")} due from ${moment(from)} to ${moment(to)}, of ${count(all)} pending.`),
    due ? chart.node : empty("Nothing is due in this time."),
    h(
      "div",
      { class: "pages" },
      from > to - from && h("a", { href: go(from - (to - from)) }, "Earlier"),
      h("a", { href: go(to) }, "Later"),
    ),
    h("h2", {}, "By target topic"),
    due
      ? table(
        "Schedules that are due in this time, by target topic",
        [{ name: "Topic" }, { name: "Schedules", number: true }],
        byTopic(counts).map(([topic, sum]) => [
          h("a", {
            href: address("schedules", { tenant, target_topic: topic, due_from: from, due_to: to, sort: "due" }),
          }, userText(topic)),
          count(sum),
        ]),
      )
      : empty("No topic has anything due in this time."),
  ];
}
