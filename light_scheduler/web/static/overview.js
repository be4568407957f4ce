/**
 * The overview: how much goes in and out, how late, what waits, and what is wrong.
 * @module
 */

import { lineChart } from "./chart.js";
import { percentile, targetsOf, totals } from "./cluster.js";
import { h } from "./elements.js";
import { count, duration, MISSING, rate } from "./format.js";
import { rates, showCluster } from "./live.js";
import { KEPT_MS, RECENT_MS } from "./rates.js";
import { troublesNotice } from "./troubles.js";
import { address, empty, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */
/** @typedef {import("./elements.js").Child} Child */

/**
 * @param {import("./types.d.ts").Context} context
 * @returns {import("./types.d.ts").View}
 */
export function overview({ signal }) {
  const node = h("div", {}, loading());
  void showCluster(node, draw, signal);
  return { title: "Overview", node };
}

/** @param {Cluster} cluster */
function draw(cluster) {
  return [troublesNotice(cluster), tiles(cluster), h("h2", {}, "Target topics"), targets(cluster)];
}

/** @param {Cluster} cluster */
function tiles(cluster) {
  const { pending, lag, deadLetters, nextDue } = totals(cluster);
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
      chart("Accepted a second", "accepted", cluster.time),
    ),
    tile("Fired", rate(last?.fired ?? null), "messages a second", chart("Fired a second", "fired", cluster.time)),
    tile("Lateness", bound(percentile(late, 0.5)), "half of the firings of the last minute", [
      h(
        "dl",
        { class: "percentiles" },
        ...[0.9, 0.99].map((share) => [
          h("dt", {}, `p${share * 100}`),
          h("dd", {}, bound(percentile(late, share))),
        ]),
      ),
    ]),
    tile(
      "Pending",
      count(pending),
      "schedules",
      nextDue === null ? null : h(
        "p",
        { class: isOverdue ? "warning" : null },
        isOverdue ? "Overdue since " : "Next due ",
        instant(nextDue, cluster.time),
      ),
    ),
    tile("Backlog", count(lag), "commands to be read"),
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
 * @param {"accepted" | "fired"} what
 * @param {number} now
 */
function chart(label, what, now) {
  const values = rates.samples.map((sample) => ({ at: sample.at, value: sample[what] ?? 0 }));
  const from = Math.max(now - KEPT_MS, Math.min(values[0]?.at ?? now, now - RECENT_MS));
  return lineChart(`${label}, since this page was opened, up to 10 minutes`, values, from, now);
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
