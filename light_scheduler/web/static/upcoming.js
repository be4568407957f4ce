/**
 * Upcoming firings: the number of schedules due in each minute, hour or day, of one tenant or of all. A bar opens shorter intervals, and
 * finally its schedules; any range can be zoomed into.
 * @module
 */

import { countsOf, GROUPS, intoGroup, pendingOf, question } from "./ahead.js";
import { queryString, request } from "./api.js";
import { BarChart, moment } from "./bar_chart.js";
import { h, replace } from "./elements.js";
import { count, plural } from "./format.js";
import { instantOf, LATEST, parseInstant, typedInstant } from "./instants.js";
import { barsOf, byTopic, rangeFrom } from "./intervals.js";
import { go } from "./navigation.js";
import { timeMode } from "./preferences.js";
import { tenantField } from "./tenants.js";
import { address, choice, empty, failure, field, loading, table, userText } from "./widgets.js";
import { parametersOf, rangeOf, zoomedOut } from "./zoom.js";

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
const INTERVALS = { "": "As fits", minute: "Minutes", hour: "Hours", day: "Days" };
const TIMES = ["from", "to"];

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
  const group = value("group");
  return {
    scope: tenant ? { tenant } : { target: value("target"), partition: value("partition") },
    group: group === "target" || group === "partition" ? group : "tenant",
    ...rangeAsked(value("by"), instantOf(query.get("from")) ?? Date.now(), instantOf(query.get("to"))),
  };
}

/**
 * Return whole intervals up to an end, or the default number of them.
 * @param {string} by
 * @param {number} from UTC epoch ms
 * @param {number | null} to UTC epoch ms
 * @returns {import("./zoom.js").Range}
 */
function rangeAsked(by, from, to) {
  const wanted = by === "minute" || by === "hour" || by === "day" ? by : null;
  if (to !== null && to > from) return rangeOf(from, to, wanted);
  const usual = wanted ?? "hour";
  return { by: usual, ...rangeFrom(from, usual) };
}

/** @param {Context} context */
function filters(context) {
  const { scope: { tenant = "", target, partition }, group, by } = asked(context);
  const { query } = context;
  const hidden = Object.entries({ target, partition }).map(([name, value]) =>
    value && h("input", { type: "hidden", name, value })
  );
  return h(
    "form",
    { class: "filters", role: "search", onsubmit: show },
    tenantField(context.identity, tenant, true),
    hidden,
    !tenant && choice("Group by", GROUPS, group, { name: "group" }),
    choice("Intervals", INTERVALS, query.get("by") ? by : "", { name: "by" }),
    TIMES.map((name) => timeField(name, instantOf(query.get(name)))),
    h("button", { class: "main" }, "Show"),
  );
}

/**
 * Return the field for the start or the end of the range. If empty, it starts now, with the default length.
 * @param {string} name
 * @param {number | null} at UTC epoch ms
 */
function timeField(name, at) {
  const [label, placeholder] = name === "from" ? ["From", "now"] : ["Until", "+2h or 2030-01-31"];
  return field(label, {
    name,
    placeholder,
    value: at === null ? "" : typedInstant(at, timeMode() === "utc"),
    oninput: (/** @type {Event} */ event) => accept(/** @type {HTMLInputElement} */ (event.target).form),
  });
}

/** @param {SubmitEvent} event */
function show(event) {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value).trim()]));
  const now = Date.now();
  const [from, to] = TIMES.map((name) => instantIn(form, name, now));
  if (from === undefined || to === undefined) return;
  const begin = from ?? now;
  if (to !== null && to <= begin) return refuse(form, "to", "Must be after the beginning of the range.");
  go(address("upcoming", { ...values, from: to === null ? from : begin, to }));
}

/**
 * Return the instant typed into a field; null if empty; undefined if it is invalid, and the field shows why.
 * @param {HTMLFormElement} form
 * @param {string} name
 * @param {number} now UTC epoch ms
 */
function instantIn(form, name, now) {
  try {
    return parseInstant(inputOf(form, name).value, now);
  } catch (error) {
    refuse(form, name, /** @type {Error} */ (error).message);
  }
}

/**
 * Show at a field why it is invalid.
 * @param {HTMLFormElement} form
 * @param {string} name
 * @param {string} why
 */
function refuse(form, name, why) {
  const input = inputOf(form, name);
  input.setCustomValidity(why);
  input.reportValidity();
}

/**
 * Remove the errors at both ends of the range, since each may be invalid because of the other.
 * @param {HTMLFormElement | null} form
 */
function accept(form) {
  if (form) TIMES.forEach((name) => inputOf(form, name).setCustomValidity(""));
}

/**
 * @param {HTMLFormElement} form
 * @param {string} name
 */
function inputOf(form, name) {
  return /** @type {HTMLInputElement} */ (form.elements.namedItem(name));
}

/**
 * @param {Element} results
 * @param {Context} context
 */
async function fillIn(results, context) {
  const now = asked(context);
  const [path, only] = question(now.scope, now.group, TOP);
  const query = queryString({ ...only, by: now.by, due_from: now.from, due_to: Math.min(now.to, LATEST) });
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
  const chart = new BarChart(HEIGHT);
  const shown = "groups" in answer ? { ...scope, group: answer.group } : scope;
  const now = Date.now();
  chart.show({ bars, by, scope: shown, now });
  const isOne = bars.length === 1;
  return [
    narrowed(asked),
    h(
      "p",
      {},
      `${plural(due, "schedule")} due from ${moment(from)} to ${moment(to)}, of ${count(pendingOf(answer))} pending.`,
    ),
    due ? !isOne && chart.node : empty("Nothing is due in this time."),
    pages({ by, from, to }, shown, now),
    "groups" in answer ? groups(answer, asked) : topics(answer, scope.tenant ?? ""),
  ];
}

/**
 * Return links to the ranges before, after and around a range, and to the present.
 * @param {import("./zoom.js").Range} range
 * @param {Scope} scope
 * @param {number} now UTC epoch ms
 */
function pages(range, scope, now) {
  const { by, from, to } = range;
  const link = (/** @type {import("./zoom.js").Range} */ next) =>
    address("upcoming", { ...scope, ...parametersOf(next) });
  const length = to - from;
  const out = zoomedOut(range, now);
  return h(
    "div",
    { class: "pages" },
    from > length && h("a", { href: link({ by, from: from - length, to: from }) }, "Earlier"),
    h("a", { href: link({ by, from: to, to: to + length }) }, "Later"),
    out && h("a", { href: link(out) }, "Zoom out"),
    from !== rangeFrom(now, by).from && h("a", { href: address("upcoming", scope) }, "From now"),
  );
}

/**
 * Describe what the counts cover, unless it is all tenants.
 * @param {Asked} asked
 */
function narrowed({ scope: { tenant, target, partition }, group, ...range }) {
  if (tenant || (!target && !partition)) return null;
  const of = [
    target && ["target topic ", userText(target)],
    target && partition && ", ",
    partition && ["partition ", userText(partition)],
  ];
  return h(
    "p",
    {},
    "Only ",
    of,
    ". ",
    h("a", { href: address("upcoming", { group, ...parametersOf(range) }) }, "Show all"),
  );
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
    h("p", { class: "warning" }, "Incomplete: a partition has more groups than it reports. “All others” has the rest."),
    rows.length
      ? table(
        `Schedules that are due in this time, by ${title.toLowerCase()}`,
        [{ name: title }, { name: "Due in this time", number: true }, { name: "Pending", number: true }],
        rows,
      )
      : empty("Nothing is pending."),
  ];
}
