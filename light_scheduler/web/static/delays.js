/**
 * The delay rules, and the progress of each.
 * @module
 */

import { request } from "./api.js";
import { h, refresh } from "./elements.js";
import { count, duration, MISSING } from "./format.js";
import { poll } from "./poll.js";
import { badge, empty, failure, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").DelayList} DelayList */
/** @typedef {import("./types.d.ts").DelayLane} DelayLane */
/** @typedef {import("./types.d.ts").DelayRule} DelayRule */

const EVERY_MS = 5_000;
const RULES = [{ name: "Rule" }, { name: "From" }, { name: "Delay" }, { name: "To" }, { name: "State" }];
const LANES = [
  { name: "Rule" },
  { name: "Partition" },
  { name: "State" },
  { name: "Lag", number: true },
  { name: "Next due" },
  { name: "Forwarded", number: true },
  { name: "Dead letters", number: true },
  { name: "Expired", number: true },
];

/**
 * @param {import("./types.d.ts").Context} context
 * @returns {import("./types.d.ts").View}
 */
export function delays({ signal }) {
  const node = h("div", {}, loading());
  void poll(
    async () => {
      try {
        refresh(node, draw(await request("/api/v1/delays", { signal })));
      } catch (error) {
        if (!signal.aborted) refresh(node, failure(error));
      }
    },
    () => EVERY_MS,
    signal,
  );
  return { title: "Delay rules", node };
}

/** @param {DelayList} list */
function draw({ delays, lanes, unanswered }) {
  if (!delays.length) {
    return [empty("There are no delay rules. Add one with light-scheduler delays, or in the configuration.")];
  }
  return [
    unanswered.length > 0 && h(
      "div",
      { class: "notice bad", role: "status" },
      h("p", {}, `These workers do not answer, so their partitions are missing: ${unanswered.join(", ")}`),
    ),
    table("Delay rules", RULES, delays.map(rule)),
    h("h2", {}, "Progress"),
    lanes.length ? table("Progress of delay rules", LANES, lanes.map(lane)) : empty("No rule runs on any partition."),
    h("p", { class: "note" }, "Lag: offsets of the source that are not forwarded yet. Transaction markers count, too."),
  ];
}

/** @param {DelayRule} rule */
function rule({ name, source, delay, target, refused, warnings }) {
  return [
    userText(name),
    userText(source),
    duration(delay),
    userText(target),
    [
      badge(refused === null ? "in force" : "not in force"),
      refused !== null && h("p", { class: "note" }, userText(refused, 400)),
      ...warnings.map((warning) => h("p", { class: "warning" }, userText(warning, 400))),
    ],
  ];
}

/** @param {DelayLane} lane */
function lane({ rule, source, partition, state, reason, lag, next_due: due, forwarded, dead_letters: dead, expired }) {
  return [
    userText(rule),
    [userText(source), `[${partition}]`],
    [badge(state), reason && h("p", { class: "note" }, userText(reason, 300))],
    lag === null ? MISSING : count(lag),
    instant(due),
    count(forwarded),
    count(dead),
    count(expired),
  ];
}
