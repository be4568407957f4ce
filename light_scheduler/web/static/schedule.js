/**
 * One schedule: definition, payload, next firings and history.
 * @module
 */

import { actions } from "./actions.js";
import { ApiError, queryString, request, schedulesPath } from "./api.js";
import { contentView, headersView, line } from "./content.js";
import { mayWrite } from "./definition.js";
import { h, replace } from "./elements.js";
import { count, duration, MISSING, size, trigger } from "./format.js";
import { showHistory } from "./history.js";
import { timeMode } from "./preferences.js";
import { firingsOf, previewOf } from "./next_firings.js";
import { whySection } from "./why.js";
import { address, badge, empty, exactInstant, facts, failure, instant, loading, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").Child} Child */
/** @typedef {import("./types.d.ts").ScheduleDetail} ScheduleDetail */

const FIRINGS = 10;

/** How far back to search the history of a schedule that is not pending. */
const GONE_MS = 7 * 86_400_000;

/** Maximum difference between the clocks of a worker and of the broker. */
const CLOCKS_MS = 60_000;

/** Ids that browsers treat as folders in an address, so that they cannot request such a schedule. */
const FOLDERS = [".", ".."];

/**
 * @param {Context} context
 * @returns {import("./types.d.ts").View}
 */
export function schedule(context) {
  const tenant = context.query.get("tenant") ?? "";
  const id = context.query.get("id") ?? "";
  const answers = h("div", {});
  const body = h("div", {}, loading());
  const past = h("div", {});
  const back = h("a", { href: address("schedules", { tenant }) }, "Schedules of ", userText(tenant));

  let since = Date.now() - GONE_MS;
  let showing = new AbortController();

  async function show() {
    showing.abort();
    showing = new AbortController();
    const signal = AbortSignal.any([showing.signal, context.signal]);
    if (FOLDERS.includes(id)) return showSummary(body, tenant, id, signal);
    const of = (/** @type {ScheduleDetail} */ found) => actions(found, answers, () => void show(), context.signal);
    const found = await showDefinition(body, tenant, id, { ...context, signal }, of);
    if (found === null) return;
    since = found;
    await showHistory(past, { tenant, id }, since, signal);
  }

  void show();
  const why = !FOLDERS.includes(id) && whySection({ tenant, id }, () => since, context.signal);
  const node = h("div", {}, answers, body, why, h("h2", {}, "History"), past);
  return { title: "Schedule", back, heading: userText(id, 1_000), node };
}

/**
 * Show a schedule. Return the start (UTC epoch ms) of its relevant history; null if nothing is known.
 * @param {Element} element
 * @param {string} tenant
 * @param {string} id
 * @param {Context} context
 * @param {(found: ScheduleDetail) => Node} actionsOf
 * @returns {Promise<number | null>}
 */
async function showDefinition(element, tenant, id, { identity, signal }, actionsOf) {
  try {
    /** @type {ScheduleDetail} */
    const found = await request(`${schedulesPath(tenant, id)}?decoded=true`, { signal });
    const firings = h("div", {}, loading());
    const focused = actionsIn(element).findIndex((each) => each === document.activeElement);
    replace(
      element,
      mayWrite(identity) && actionsOf(found),
      definition(found),
      h("h2", {}, "Next firings"),
      firings,
      h("h2", {}, "Payload"),
      contentView(found.payload, found.decoded),
      h("h2", {}, "Headers"),
      headersView(found.headers),
    );
    actionsIn(element)[focused]?.focus();
    void showFirings(firings, found, signal);
    return found.accepted_at - CLOCKS_MS;
  } catch (error) {
    if (signal.aborted) return null;
    const isGone = error instanceof ApiError && error.status === 404;
    replace(
      element,
      isGone ? empty("It is not pending: it was delivered or cancelled, or it never existed.") : failure(error),
    );
    return Date.now() - GONE_MS;
  }
}

/**
 * @param {Element} element
 * @returns {HTMLElement[]}
 */
function actionsIn(element) {
  return [...element.querySelectorAll(/** @type {"button"} */ (".actions button"))];
}

/**
 * Show a schedule whose id browsers cannot request, from the list: in byte order, it is the first with this prefix.
 * @param {Element} element
 * @param {string} tenant
 * @param {string} id
 * @param {AbortSignal} signal
 */
async function showSummary(element, tenant, id, signal) {
  const query = queryString({ id_prefix: id, sort: "id", limit: 1 });
  try {
    /** @type {import("./types.d.ts").SchedulePage} */
    const { schedules } = await request(schedulesPath(tenant) + query, { signal });
    const found = schedules.find((each) => each.id === id);
    const why = "A browser cannot request an id of dots alone. For payload, history and actions, use the command line.";
    replace(element, empty(why), found ? definition(found) : empty("It is not pending."));
  } catch (error) {
    if (!signal.aborted) replace(element, failure(error));
  }
}

/** @param {import("./types.d.ts").Schedule} found */
function definition(found) {
  return h(
    "div",
    { class: "groups" },
    group("When", when(found)),
    group("Where", where(found)),
    group("Policy", policy(found)),
  );
}

/**
 * @param {string} title
 * @param {[string, Child][]} rows
 */
function group(title, rows) {
  return h("section", {}, h("h2", {}, title), facts(...rows));
}

/**
 * @param {import("./types.d.ts").Schedule} found
 * @returns {[string, Child][]}
 */
function when(found) {
  const { at } = found.trigger;
  return [
    ["State", badge(found.state)],
    ["Next due", instant(found.due)],
    [
      "Trigger",
      at === undefined ? userText(trigger(found.trigger, timeMode(), Date.now()), 400) : ["once, ", instant(at)],
    ],
    ["Sequence", `${count(found.sequence)}${found.attempt > 1 ? `, attempt ${found.attempt}` : ""}`],
    ["Accepted", instant(found.accepted_at)],
    ["Version", count(found.version)],
  ];
}

/**
 * @param {import("./types.d.ts").Schedule} found
 * @returns {[string, Child][]}
 */
function where(found) {
  const { target, source } = found;
  const labels = Object.entries(found.labels);
  return [
    ["Target topic", [userText(target.topic), target.partition === null ? null : `[${target.partition}]`]],
    ["Key", key(found)],
    ["Payload", found.payload_bytes === null ? "null" : size(found.payload_bytes)],
    [
      "Labels",
      labels.length
        ? labels.map(([name, value]) => h("span", { class: "label" }, userText(`${name}=${value}`)))
        : MISSING,
    ],
    ["Command", userText(`${source.topic}[${source.partition}]@${source.offset}`)],
  ];
}

/**
 * @param {import("./types.d.ts").Schedule} found
 * @returns {[string, Child][]}
 */
function policy(found) {
  const { acknowledgement: completion } = found;
  return [
    ["Priority", count(found.priority)],
    ["Time to live", found.ttl === null ? "no limit" : duration(found.ttl)],
    ["Missed firings", `${found.misfire}, after ${duration(found.misfire_grace)}`],
    [
      "Completion",
      completion
        ? `within ${duration(completion.timeout)}, ${completion.max_attempts} attempts, ${completion.overlap}`
        : "not needed",
    ],
    ...found.awaiting.map((each) => /** @type {[string, Child]} */ ([
      "Waits for completion",
      [userText(each.firing_id), each.until === null ? "" : [" until ", instant(each.until)]],
    ])),
  ];
}

/** @param {import("./types.d.ts").Schedule} found */
function key({ target }) {
  if (target.key_base64 !== undefined) return line({ base64: target.key_base64 });
  return line(target.key === null ? null : { text: target.key });
}

/**
 * @param {Element} element
 * @param {ScheduleDetail} found
 * @param {AbortSignal} signal
 */
async function showFirings(element, found, signal) {
  const now = Date.now();
  const asked = previewOf(found, FIRINGS, now);
  try {
    const next = firingsOf(found, asked === null ? [] : await preview(asked, signal), FIRINGS, now);
    const note = found.state === "paused" &&
      h("p", { class: "note" }, "It is paused: it fires at these times once you resume it.");
    const rows = next.map((at) => h("li", {}, exactInstant(at)));
    replace(element, rows.length ? [note, h("ol", { class: "firings" }, ...rows)] : empty("No firing is planned."));
  } catch (error) {
    if (!signal.aborted) replace(element, failure(error));
  }
}

/**
 * @param {{ parameters: Record<string, number>, body: unknown }} asked
 * @param {AbortSignal} signal
 * @returns {Promise<number[]>}
 */
async function preview({ parameters, body }, signal) {
  const options = { method: "POST", body, signal, isRead: true };
  return (await request(`/api/v1/preview${queryString(parameters)}`, options)).next;
}
