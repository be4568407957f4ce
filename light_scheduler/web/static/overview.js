/**
 * The overview: how much goes in and out, how late, what waits, and what is wrong.
 * @module
 */

import { lineChart } from "./chart.js";
import { percentile, targetsOf, totals } from "./cluster.js";
import { h } from "./elements.js";
import { count, duration, MISSING, rate } from "./format.js";
import { HOUR_MS, lineOf } from "./hour.js";
import { rates, showOverview } from "./live.js";
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
  const node = h("div", {}, loading());
  void showOverview(node, draw, signal);
  return { title: "Overview", node };
}

/** Tenants that are listed. */
const LISTED = 10;

/**
 * @param {Cluster} cluster
 * @param {Overview} overview
 */
function draw(cluster, overview) {
  return [
    troublesNotice(cluster, overview.missing),
    tiles(cluster, overview),
    h("h2", {}, "Target topics"),
    targets(cluster),
    h("h2", {}, "Tenants"),
    tenants(overview),
  ];
}

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
    tile("Lateness", bound(percentile(late, 0.5)), "half of the firings of the last minute", [
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
    tile(
      "Pending",
      count(overview.pending),
      "schedules",
      nextDue === null ? null : h(
        "p",
        { class: isOverdue ? "warning" : null },
        isOverdue ? "Overdue since " : "Next due ",
        instant(nextDue, cluster.time),
      ),
    ),
    tile("Backlog", count(lag), "commands to be read", chart("Commands to be read", "backlog", count, overview)),
    tile(
      "Dead letters",
      count(deadLetters),
      "since the workers took their partitions",
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
  return h(
    "section",
    { class: "tile" },
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
  const peak = highest === null ? "Nothing yet in the last hour" : `Highest in the last hour: ${text(highest)}`;
  return [lineChart(`${label}, the last hour. ${peak}`, values, time - HOUR_MS, time), h("p", { class: "note" }, peak)];
}

/** @param {number | null} ms */
function bound(ms) {
  if (ms === null) return MISSING;
  return ms === Infinity ? "> 10 min" : `≤ ${duration(ms)}`;
}

/** @param {Cluster} cluster */
function targets(cluster) {
  const found = targetsOf(cluster);
  if (!found.length) return empty("All target topics take messages.");
  return table(
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
}

/** @param {Overview} overview */
function tenants(overview) {
  if (!overview.tenants.length) return empty("Nothing is pending.");
  const tooFew = !overview.complete &&
    h("p", { class: "warning" }, "Too few: a partition has more tenants and topics than it reports.");
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
