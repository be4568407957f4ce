/**
 * The overview: rates, lateness, backlog, and problems.
 * @module
 */

import { lineChart } from "./chart.js";
import { partitionsOf, percentile, targetsOf, totals } from "./cluster.js";
import { h, refresh } from "./elements.js";
import { count, duration, MISSING, rate } from "./format.js";
import { beginOf, lineOf } from "./hour.js";
import { rates, showOverview } from "./live.js";
import { roadAhead } from "./road_ahead.js";
import { troublesNotice } from "./troubles.js";
import { address, empty, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */
/** @typedef {import("./types.d.ts").Overview} Overview */
/** @typedef {import("./elements.js").Child} Child */

/**
 * @param {import("./types.d.ts").Context} context
 * @returns {import("./types.d.ts").View}
 */
export function overview({ signal }) {
  const status = h("div", {}, loading());
  const ahead = roadAhead(signal);
  const rest = h("div", {});
  void showOverview(
    status,
    (cluster, overview) => {
      ahead.choose({
        tenant: overview.tenants.map(({ tenant }) => tenant),
        target: overview.targets.map(({ target_topic: topic }) => topic),
        partition: partitionsOf(cluster).map(({ topic, partition }) => `${topic}[${partition}]`),
      });
      refresh(rest, tiles(cluster, overview), h("h2", {}, "Tenants"), tenants(overview));
      return [h("div", { class: "row state" }, troublesNotice(cluster, overview.missing), targets(cluster))];
    },
    signal,
  );
  return { title: "Overview", node: h("div", {}, status, ahead.node, rest) };
}

/** Number of tenants that are listed. */
const LISTED = 10;

/**
 * @param {Cluster} cluster
 * @param {Overview} overview
 */
function tiles(cluster, overview) {
  const { lag, deadLetters, nextDue } = totals(cluster);
  const last = rates.samples.at(-1);
  const late = rates.lateness();
  const isOverdue = nextDue !== null && nextDue < cluster.time - 1_000;
  return h(
    "div",
    { class: "tiles" },
    tile(
      "Accepted",
      rate(last?.accepted ?? null),
      "commands a second",
      chart("Accepted a second", "accepted", rate, overview),
    ),
    tile("Fired", rate(last?.fired ?? null), "messages a second", chart("Fired a second", "fired", rate, overview)),
    tile("Lateness", bound(percentile(late, 0.5)), "p50 of the last minute", [
      h(
        "dl",
        { class: "percentiles" },
        ...[0.9, 0.99].map((share) => [
          h("dt", {}, `p${share * 100}`),
          h("dd", {}, bound(percentile(late, share))),
        ]),
      ),
      chart("Lateness of 99 % of the firings", "p99", bound, overview),
    ]),
    tileOfTrouble(
      isOverdue,
      "Pending",
      count(overview.pending),
      "schedules",
      nextDue === null ? null : h(
        "p",
        { class: isOverdue ? "warning" : null },
        isOverdue ? "Overdue since " : "Next due ",
        instant(nextDue, cluster.time),
      ),
      Object.entries(overview.states).map(([state, number]) =>
        state !== "pending" && number > 0 && h("p", { class: "note" }, `${count(number)} ${state}`)
      ),
    ),
    tile("Backlog", count(lag), "commands not read yet", chart("Commands not read yet", "backlog", count, overview)),
    tileOfTrouble(
      deadLetters > 0,
      "Dead letters",
      count(deadLetters),
      "since workers took over their partitions",
      h("p", {}, h("a", { href: address("dead-letters") }, "Show")),
    ),
  );
}

/**
 * @param {string} name
 * @param {string} value
 * @param {string} unit
 * @param {...Child} more
 */
function tile(name, value, unit, ...more) {
  return section("tile", name, value, unit, more);
}

/**
 * Return a tile that stands out if something needs attention.
 * @param {boolean} isTrouble
 * @param {string} name
 * @param {string} value
 * @param {string} unit
 * @param {...Child} more
 */
function tileOfTrouble(isTrouble, name, value, unit, ...more) {
  return section(isTrouble ? "tile bad" : "tile", name, value, unit, more);
}

/**
 * @param {string} style
 * @param {string} name
 * @param {string} value
 * @param {string} unit
 * @param {Child[]} more
 */
function section(style, name, value, unit, more) {
  return h(
    "section",
    { class: style },
    h("h2", {}, name),
    h("p", { class: "value" }, value),
    h("p", { class: "unit" }, unit),
    more,
  );
}

/**
 * @param {string} label
 * @param {"accepted" | "fired" | "p99" | "backlog"} what
 * @param {(value: number | null) => string} text
 * @param {Overview} overview
 */
function chart(label, what, text, { time, hour }) {
  const { values, highest } = lineOf(hour, what);
  const peak = highest === null ? "Nothing yet" : `Highest: ${text(highest)}`;
  const begin = beginOf(hour, time);
  return h(
    "div",
    { class: "trend" },
    lineChart(`${label}, from ${begin.label} until now. ${peak}`, values, begin.from, time),
    h("p", { class: "ends", "aria-hidden": "true" }, h("span", {}, begin.label), h("span", {}, "now")),
    h("p", { class: "note" }, peak),
  );
}

/** @param {number | null} ms */
function bound(ms) {
  if (ms === null) return MISSING;
  return ms === Infinity ? "> 10 min" : `≤ ${duration(ms)}`;
}

/** @param {Cluster} cluster */
function targets(cluster) {
  const found = targetsOf(cluster);
  if (!found.length) return h("p", { class: "note" }, "All target topics are available.");
  const unavailable = table(
    "Target topics that are unavailable",
    [{ name: "Topic" }, { name: "Partitions" }, { name: "Unavailable since" }, { name: "Waiting", number: true }, {
      name: "Reason",
    }],
    found.map(({ topic, partitions, unavailable_since: since, waiting, reason }) => [
      userText(topic),
      partitions.length ? partitions.join(", ") : "all",
      instant(since, cluster.time),
      count(waiting),
      userText(reason, 400),
    ]),
  );
  return h("section", { class: "outage" }, h("h2", {}, "Target topics that are unavailable"), unavailable);
}

/** @param {Overview} overview */
function tenants(overview) {
  if (!overview.tenants.length) return empty("Nothing is pending.");
  const tooFew = !overview.complete &&
    h("p", { class: "warning" }, "Incomplete: a partition has more tenants and topics than it reports.");
  return [
    tooFew,
    table(
      "Tenants with the most schedules",
      [{ name: "Tenant" }, { name: "Schedules", number: true }],
      overview.tenants.slice(0, LISTED).map(({ tenant, pending }) => [
        h("a", { href: address("schedules", { tenant }) }, userText(tenant)),
        count(pending),
      ]),
    ),
  ];
}
