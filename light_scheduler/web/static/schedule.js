/**
 * One schedule: definition, payload, next firings and history.
 * @module
 */

import { actions } from "./actions.js";
import { ApiError, queryString, request, schedulesPath } from "./api.js";
import { contentView, headersView, line } from "./content.js";
import { mayWrite } from "./definition.js";
import { h, replace } from "./elements.js";
import { count, duration, trigger } from "./format.js";
import { timeMode } from "./preferences.js";
import { previewOf } from "./next_firings.js";
import { address, badge, empty, exactInstant, facts, failure, instant, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").ScheduleDetail} ScheduleDetail */
/** @typedef {import("./types.d.ts").HistoryPage} HistoryPage */

const FIRINGS = 10;

/**
 * @param {Context} context
 * @returns {import("./types.d.ts").View}
 */
export function schedule(context) {
  const tenant = context.query.get("tenant") ?? "";
  const id = context.query.get("id") ?? "";
  const answers = h("div", {});
  const body = h("div", {}, loading());
  const past = h("div", {}, loading("Searching the history…"));
  const heading = h("p", { class: "heading" }, userText(id, 1_000));
  const back = h("p", {}, h("a", { href: address("schedules", { tenant }) }, "All schedules of ", userText(tenant)));

  function show() {
    void showDefinition(body, tenant, id, context, (found) => actions(found, answers, show, context.signal));
    void showHistory(past, tenant, id, context);
  }

  show();
  return { title: "Schedule", node: h("div", {}, back, heading, answers, body, h("h2", {}, "History"), past) };
}

/**
 * @param {Element} element
 * @param {string} tenant
 * @param {string} id
 * @param {Context} context
 * @param {(found: ScheduleDetail) => Node} actionsOf
 */
async function showDefinition(element, tenant, id, { identity, signal }, actionsOf) {
  try {
    /** @type {ScheduleDetail} */
    const found = await request(schedulesPath(tenant, id), { signal });
    const firings = h("div", {}, loading());
    replace(
      element,
      mayWrite(identity) && actionsOf(found),
      definition(found),
      h("h2", {}, "Next firings"),
      firings,
      h("h2", {}, "Payload"),
      contentView(found.payload),
      h("h2", {}, "Headers"),
      headersView(found.headers),
    );
    await showFirings(firings, found, signal);
  } catch (error) {
    if (signal.aborted) return;
    const isGone = error instanceof ApiError && error.status === 404;
    replace(
      element,
      isGone ? empty("It is not pending: it was delivered or cancelled, or it never existed.") : failure(error),
    );
  }
}

/** @param {ScheduleDetail} found */
function definition(found) {
  const { target, acknowledgement: completion } = found;
  return facts(
    ["State", badge(found.state)],
    ["Next due", instant(found.due)],
    ["Trigger", userText(trigger(found.trigger, timeMode(), Date.now()), 400)],
    ["Target topic", [userText(target.topic), target.partition === null ? null : `[${target.partition}]`]],
    ["Key", key(found)],
    [
      "Labels",
      Object.entries(found.labels).map(([name, value]) => h("span", { class: "label" }, userText(`${name}=${value}`))),
    ],
    ["Version", count(found.version)],
    ["Next firing is number", `${count(found.sequence)}${found.attempt > 1 ? `, attempt ${found.attempt}` : ""}`],
    ["Accepted", instant(found.accepted_at)],
    ["Command", userText(`${found.source.topic}[${found.source.partition}]@${found.source.offset}`)],
    ["Priority", count(found.priority)],
    ["Time to live", found.ttl === null ? "no limit" : duration(found.ttl)],
    ["Missed firings", `${found.misfire}, after ${duration(found.misfire_grace)}`],
    [
      "Completion",
      completion
        ? `within ${duration(completion.timeout)}, ${completion.max_attempts} attempts, ${completion.overlap}`
        : "not needed",
    ],
    ...found.awaiting.map((each) => /** @type {[string, import("./elements.js").Child]} */ ([
      "Waits for completion of",
      [userText(each.firing_id), each.until === null ? "" : " until ", each.until === null ? "" : instant(each.until)],
    ])),
  );
}

/** @param {ScheduleDetail} found */
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
  const asked = previewOf(found, FIRINGS, Date.now());
  try {
    /** @type {{ next: number[] }} */
    const { next } = asked === null
      ? { next: found.due === null ? [] : [found.due] }
      : await request(`/api/v1/preview${queryString(asked.parameters)}`, { method: "POST", body: asked.body, signal });
    const note = found.state === "paused" &&
      h("p", { class: "note" }, "It is paused: it fires at these times once it is resumed.");
    const rows = next.map((at) => h("li", {}, exactInstant(at)));
    replace(element, rows.length ? [note, h("ol", { class: "firings" }, ...rows)] : empty("None is planned."));
  } catch (error) {
    if (!signal.aborted) replace(element, failure(error));
  }
}

/**
 * @param {Element} element
 * @param {string} tenant
 * @param {string} id
 * @param {Context} context
 */
async function showHistory(element, tenant, id, { signal, query }) {
  try {
    const parameters = queryString({ limit: 50, cursor: query.get("cursor") });
    /** @type {HistoryPage} */
    const page = await request(`${schedulesPath(tenant, id)}/history${parameters}`, { signal });
    replace(element, events(page), searched(page, tenant, id));
  } catch (error) {
    if (!signal.aborted) replace(element, failure(error));
  }
}

/** @param {HistoryPage} page */
function events(page) {
  if (!page.events.length) return empty("No events found.");
  return table(
    "History",
    [{ name: "When" }, { name: "Event" }, { name: "Due" }, { name: "Version", number: true }, { name: "By" }, {
      name: "Reason",
    }],
    page.events.map(({ at, event, due, version, attempt, by, address: from, reason }) => [
      instant(at),
      `${event}${attempt !== null && attempt > 1 ? `, attempt ${attempt}` : ""}`,
      instant(due),
      count(version),
      by ? [userText(by), from ? ` (${from})` : ""] : "–",
      reason ? userText(reason, 300) : "–",
    ]),
  );
}

/**
 * @param {HistoryPage} page
 * @param {string} tenant
 * @param {string} id
 */
function searched(page, tenant, id) {
  return h(
    "p",
    { class: "pages" },
    h("span", { class: "note" }, "Searched back to ", instant(page.searched_from)),
    page.next_cursor !== null &&
      h("a", { href: address("schedule", { tenant, id, cursor: page.next_cursor }) }, "Search further back"),
  );
}
