/**
 * What is ahead: how many schedules are due in each minute, hour or day, of a tenant or of all of them. A bar opens into shorter
 * intervals, and in the end into its schedules.
 * @module
 */

import { countsOf, GROUPS, intoGroup, pendingOf, question } from "./ahead.js";
import { queryString, request } from "./api.js";
import { barChart, moment } from "./bar_chart.js";
import { h, replace } from "./elements.js";
import { count, plural } from "./format.js";
import { barsOf, byTopic, rangeFrom } from "./intervals.js";
import { tenantField } from "./tenants.js";
import { address, choice, empty, failure, loading, table, userText } from "./widgets.js";

/** @typedef {import("./ahead.js").Group} Group */
/** @typedef {import("./ahead.js").Scope} Scope */
/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").Upcoming} Upcoming */
/** @typedef {import("./types.d.ts").UpcomingGroups} UpcomingGroups */
/** @typedef {import("./intervals.js").By} By */
/**
 * @typedef {object} Asked What the address asks for. Instants are UTC epoch ms.
 * @property {Scope} scope
 * @property {Group} group by which schedules of all tenants are listed
 * @property {By} by
 * @property {number} from
 * @property {number} to
 */

const HEIGHT = 260;
const TOP = 50;
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
 * @param {Context} context
 * @returns {Asked}
 */
function asked({ query, identity }) {
  const value = (/** @type {string} */ name) => query.get(name) ?? "";
  const tenant = value("tenant") || (identity.tenants?.[0] ?? "");
  const [by, group, from, to] = [value("by"), value("group"), Number(value("from")), Number(value("to"))];
  const interval = by === "minute" || by === "day" ? by : "hour";
  const range = rangeFrom(from > 0 ? from : Date.now(), interval);
  return {
    scope: tenant ? { tenant } : { target: value("target"), partition: value("partition") },
    group: group === "target" || group === "partition" ? group : "tenant",
    by: interval,
    from: range.from,
    to: to > range.from && to < range.to ? to : range.to,
  };
}

/** @param {Context} context */
function filters(context) {
  const { scope: { tenant = "", target, partition }, by, group } = asked(context);
  const hidden = Object.entries({ target, partition }).map(([name, value]) =>
    value && h("input", { type: "hidden", name, value })
  );
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: show },
    tenantField(context.identity, tenant, true),
    hidden,
    !tenant && choice("Group by", GROUPS, group, { name: "group" }),
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
  const now = asked(context);
  const [path, only] = question(now.scope, now.group, TOP);
  const query = queryString({ ...only, by: now.by, due_from: now.from, due_to: now.to });
  try {
    /** @type {Upcoming | UpcomingGroups} */
    const answer = await request(path + query, { signal: context.signal });
    replace(results, ...report(answer, now));
  } catch (error) {
    if (!context.signal.aborted) replace(results, failure(error));
  }
}

/**
 * @param {Upcoming | UpcomingGroups} answer
 * @param {Asked} asked
 */
function report(answer, asked) {
  const { by, due_from: from, due_to: to } = answer;
  const { scope } = asked;
  const bars = barsOf(countsOf(answer), by, from, to);
  const due = bars.reduce((sum, bar) => sum + bar.count, 0);
  const chart = barChart(HEIGHT);
  const shown = "groups" in answer ? { ...scope, group: answer.group } : scope;
  chart.show({ bars, by, scope: shown, now: Date.now() });
  const go = (/** @type {number} */ start) => address("upcoming", { ...shown, by, from: start });
  const isOne = bars.length === 1;
  return [
    narrowed(asked),
    h(
      "p",
      {},
      `${plural(due, "schedule")} due from ${moment(from)} to ${moment(to)}, of ${count(pendingOf(answer))} pending.`,
    ),
    due ? !isOne && chart.node : empty("Nothing is due in this time."),
    h(
      "div",
      { class: "pages" },
      from > to - from && !isOne && h("a", { href: go(from - (to - from)) }, "Earlier"),
      isOne
        ? h("a", { href: address("upcoming", { ...shown, by: "minute", from }) }, "Minutes from here")
        : h("a", { href: go(to) }, "Later"),
    ),
    "groups" in answer ? groups(answer, asked) : topics(answer, scope.tenant ?? ""),
  ];
}

/**
 * Say what the counts are of, if not of all tenants.
 * @param {Asked} asked
 */
function narrowed({ scope: { tenant, target, partition }, by, group, from }) {
  if (tenant || (!target && !partition)) return null;
  const of = [
    target && ["target topic ", userText(target)],
    target && partition && ", ",
    partition && ["partition ", userText(partition)],
  ];
  return h("p", {}, "Only ", of, ". ", h("a", { href: address("upcoming", { by, group, from }) }, "Show all"));
}

/**
 * @param {Upcoming} answer
 * @param {string} tenant
 */
function topics({ counts, due_from: from, due_to: to }, tenant) {
  const rows = byTopic(counts).map(([topic, sum]) => [
    h("a", {
      href: address("schedules", { tenant, target_topic: topic, due_from: from, due_to: to, sort: "due" }),
    }, userText(topic)),
    count(sum),
  ]);
  return [
    h("h2", {}, "By target topic"),
    rows.length
      ? table(
        "Schedules that are due in this time, by target topic",
        [{ name: "Topic" }, { name: "Schedules", number: true }],
        rows,
      )
      : empty("No topic has anything due in this time."),
  ];
}

/**
 * @param {UpcomingGroups} answer
 * @param {Asked} asked
 */
function groups({ group, groups, complete, due_from: from, due_to: to }, { scope, by }) {
  const into = (/** @type {string} */ name) => address(...intoGroup(group, name, scope, { by, from, to }));
  const title = GROUPS[group];
  const rows = groups.filter(({ due, pending }) => due || pending).map(({ name, due, pending }) => [
    name === null ? "All others" : h("a", { href: into(name) }, userText(name)),
    count(due),
    count(pending),
  ]);
  return [
    h("h2", {}, `By ${title.toLowerCase()}`),
    !complete &&
    h("p", { class: "warning" }, "Too few: a partition has more groups than it reports. “All others” has the rest."),
    rows.length
      ? table(
        `Schedules that are due in this time, by ${title.toLowerCase()}`,
        [{ name: title }, { name: "Due in this time", number: true }, { name: "Pending", number: true }],
        rows,
      )
      : empty("Nothing is pending."),
  ];
}
