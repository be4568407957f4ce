/**
 * A live chart of upcoming firings, of all tenants or of a selected tenant, target topic or partition.
 * @module
 */

import { countsOf, GROUPS, inOrder, pendingOf, question } from "./ahead.js";
import { queryString, request } from "./api.js";
import { BarChart } from "./bar_chart.js";
import { h, replace } from "./elements.js";
import { barsOf, rangeFrom } from "./intervals.js";
import { poll } from "./poll.js";
import { address, choice, empty, failure } from "./widgets.js";

/** @typedef {import("./ahead.js").Group} Group */
/** @typedef {import("./ahead.js").Scope} Scope */
/** @typedef {import("./intervals.js").By} By */
/** @typedef {import("./types.d.ts").Upcoming} Upcoming */
/** @typedef {import("./types.d.ts").UpcomingGroups} UpcomingGroups */

const EVERY_MS = 15_000;
/** A moving partition is unavailable for a moment. */
const AGAIN_MS = 2_000;
const HEIGHT = 200;
const RANGES = { minute: "Next 60 minutes", hour: "Next 24 hours", day: "Next 30 days" };
const ALL = "all";

/**
 * Return a section, and a function to update its choices.
 * @param {AbortSignal} signal
 */
export function roadAhead(signal) {
  const chart = new BarChart(HEIGHT);
  const body = h("div", {});
  const open = h("a", {}, "Details");
  const range = choice("Range", RANGES, "hour", { onchange: () => void showOther() });
  const of = choice("For", { [ALL]: "All tenants" }, ALL, { onchange: () => void showOther() });
  const [ranges, scopes] = [range, of].map((each) => /** @type {HTMLSelectElement} */ (each.querySelector("select")));
  let asking = new AbortController();
  let hasFailed = false;

  /** Until the answer is there, nobody should take the last choice's bars for those of this one. */
  function showOther() {
    body.inert = true;
    return show();
  }

  async function show() {
    asking.abort();
    asking = new AbortController();
    const current = AbortSignal.any([asking.signal, signal]);
    const [scope, by] = [scopeOf(scopes.value), /** @type {By} */ (ranges.value)];
    const now = Date.now();
    const { from, to } = rangeFrom(now, by);
    open.setAttribute("href", address("upcoming", { ...scope, by }));
    try {
      const [path, only] = question(scope, "tenant", 0);
      const query = queryString({ ...only, by, due_from: from, due_to: to });
      /** @type {Upcoming | UpcomingGroups} */
      const answer = await request(path + query, { signal: current });
      hasFailed = false;
      body.inert = false;
      if (!pendingOf(answer)) return replace(body, empty("Nothing is pending."));
      chart.show({ bars: barsOf(countsOf(answer), by, from, to), by, scope, now });
      if (body.firstChild !== chart.node) replace(body, chart.node);
    } catch (error) {
      if (current.aborted) return;
      hasFailed = true;
      body.inert = false;
      replace(body, failure(error));
    }
  }

  /** @param {Record<Group, string[]>} names */
  function choose(names) {
    const chosen = scopes.value;
    const groups = /** @type {Group[]} */ (Object.keys(GROUPS)).map((group) => {
      const prefix = `${group}:`;
      const own = chosen.startsWith(prefix) ? [chosen.slice(prefix.length)] : [];
      const ordered = inOrder(group, [...new Set([...names[group], ...own])]);
      return { group, values: ordered.map((name) => prefix + name) };
    });
    const wanted = [ALL, ...groups.flatMap(({ values }) => values)];
    if (wanted.join() === [...scopes.options].map(({ value }) => value).join()) return;
    replace(
      scopes,
      h("option", { value: ALL, selected: chosen === ALL }, "All tenants"),
      ...groups.filter(({ values }) => values.length).map(({ group, values }) =>
        h(
          "optgroup",
          { label: GROUPS[group] },
          ...values.map((value) => h("option", { value, selected: value === chosen }, value.slice(group.length + 1))),
        )
      ),
    );
  }

  void poll(show, () => (hasFailed ? AGAIN_MS : EVERY_MS), signal);
  const node = h(
    "section",
    {},
    h("div", { class: "row heading" }, h("h2", {}, "Due next"), of, range, open),
    body,
  );
  return { node, choose };
}

/**
 * @param {string} value of an option: "all", or a group and a name of it
 * @returns {Scope}
 */
function scopeOf(value) {
  const at = value.indexOf(":");
  return at < 0 ? {} : { [value.slice(0, at)]: value.slice(at + 1) };
}
