/**
 * What is ahead: how many schedules of a tenant are due in each minute, hour or day. A bar opens into shorter intervals, and in
 * the end into its schedules.
 * @module
 */

import { queryString, request } from "./api.js";
import { h, replace, svg } from "./elements.js";
import { count, local, plural, utc } from "./format.js";
import { barsOf, byTopic, heightsOf, inside, rangeFrom } from "./intervals.js";
import { timeMode } from "./preferences.js";
import { tenantField } from "./tenants.js";
import { address, choice, empty, failure, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").Upcoming} Upcoming */
/** @typedef {import("./intervals.js").By} By */
/** @typedef {import("./intervals.js").Bar} Bar */

const WIDTH = 960;
const HEIGHT = 220;
const LEAST = 2;
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
  const all = pending.reduce((sum, each) => sum + each.count, 0);
  const go = (/** @type {number} */ start) => address("upcoming", { tenant, by, from: start });
  return [
    h("p", {}, `${plural(due, "schedule")} due from ${moment(from)} to ${moment(to)}, of ${count(all)} pending.`),
    due ? chart(bars, by, tenant) : empty("Nothing is due in this time."),
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

/**
 * @param {Bar[]} bars
 * @param {By} by
 * @param {string} tenant
 */
function chart(bars, by, tenant) {
  const step = WIDTH / bars.length;
  const heights = heightsOf(bars, HEIGHT, LEAST);
  const most = Math.max(...bars.map((bar) => bar.count));
  return h(
    "figure",
    { class: "bars" },
    h("figcaption", {}, `Schedules per ${by}, at most ${count(most)}. Select a bar to see what is in it.`),
    svg(
      "svg",
      {
        viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
        preserveAspectRatio: "none",
        role: "group",
        "aria-label": "Schedules ahead",
      },
      ...bars.map((bar, index) => {
        if (!bar.count) return null;
        const [view, parameters] = inside(bar, by, tenant);
        const label = `${moment(bar.from)}: ${plural(bar.count, "schedule")}`;
        const place = { x: (index * step).toFixed(1), width: Math.max(1, step - 2).toFixed(1) };
        return svg(
          "a",
          { href: address(view, parameters), "aria-label": label },
          svg("title", {}, label),
          svg("rect", { ...place, y: 0, height: HEIGHT, class: "reach" }),
          svg("rect", { ...place, y: (HEIGHT - heights[index]).toFixed(1), height: heights[index].toFixed(1) }),
        );
      }),
    ),
    h("div", { class: "ends" }, h("span", {}, moment(bars[0].from)), h("span", {}, moment(bars[bars.length - 1].to))),
  );
}

/**
 * Return an instant without seconds. Intervals are counted in UTC; relative times would say less here.
 * @param {number} at UTC epoch ms
 */
function moment(at) {
  return (timeMode() === "utc" ? utc(at) : local(at)).replace(/:\d\d(?= )/, "");
}
