/**
 * What is due next, of the tenant that a user chooses, as a chart that keeps up.
 * @module
 */

import { queryString, request } from "./api.js";
import { barChart } from "./bar_chart.js";
import { h, replace } from "./elements.js";
import { barsOf, rangeFrom } from "./intervals.js";
import { poll } from "./poll.js";
import { address, choice, empty, failure } from "./widgets.js";

/** @typedef {import("./intervals.js").By} By */
/** @typedef {import("./types.d.ts").Upcoming} Upcoming */

const EVERY_MS = 15_000;
const HEIGHT = 200;
const RANGES = { minute: "Next 60 minutes", hour: "Next 24 hours", day: "Next 30 days" };

/**
 * Return a section, and a function that tells it the tenants that there are.
 * @param {AbortSignal} signal
 */
export function roadAhead(signal) {
  const chart = barChart(HEIGHT);
  const body = h("div", {});
  const open = h("a", {}, "Details");
  const range = choice("Range", RANGES, "hour", { onchange: () => void show() });
  const tenant = choice("Tenant", {}, "", { onchange: () => void show() });
  const [ranges, tenants] = [range, tenant].map((
    each,
  ) => /** @type {HTMLSelectElement} */ (each.querySelector("select")));
  let asking = new AbortController();

  async function show() {
    if (!tenants.value) return;
    asking.abort();
    asking = new AbortController();
    const current = AbortSignal.any([asking.signal, signal]);
    const [name, by] = [tenants.value, /** @type {By} */ (ranges.value)];
    const now = Date.now();
    const { from, to } = rangeFrom(now, by);
    open.setAttribute("href", address("upcoming", { tenant: name, by }));
    try {
      const query = queryString({ by, due_from: from, due_to: to });
      const path = `/api/v1/tenants/${encodeURIComponent(name)}/upcoming`;
      /** @type {Upcoming} */
      const { counts } = await request(path + query, { signal: current });
      chart.show({ bars: barsOf(counts, by, from, to), by, tenant: name, now });
      if (body.firstChild !== chart.node) replace(body, chart.node);
    } catch (error) {
      if (!current.aborted) replace(body, failure(error));
    }
  }

  /** @param {string[]} most those with the most schedules first */
  function choose(most) {
    if (!most.length && !tenants.value) return replace(body, empty("Nothing is pending."));
    const chosen = tenants.value || most[0];
    const names = [...new Set([...most, chosen])].sort();
    const shown = [...tenants.options].map(({ value }) => value);
    if (names.join() === shown.join()) return;
    replace(tenants, ...names.map((name) => h("option", { value: name, selected: name === chosen }, name)));
    if (!shown.length) void show();
  }

  void poll(show, EVERY_MS, signal);
  const node = h(
    "section",
    {},
    h("div", { class: "row heading" }, h("h2", {}, "The road ahead"), tenant, range, open),
    body,
  );
  return { node, choose };
}
