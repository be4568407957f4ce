/**
 * Actions on all schedules that match a list's filters, on all pages. Each action first shows their number.
 * @module
 */

import { mistake } from "./actions.js";
import { queryString, request } from "./api.js";
import { changeEach } from "./change_each.js";
import { ask } from "./dialog.js";
import { h, replace } from "./elements.js";
import { count, plural } from "./format.js";
import { parseInstant } from "./instants.js";
import { counted, howMany, inWords, isOneCommand, listed, MOST_ONE_BY_ONE, selectionOf } from "./selection.js";
import { triggerFields } from "./trigger_fields.js";
import { button, failure, userText } from "./widgets.js";

/** @typedef {import("./selection.js").Command} Command */
/** @typedef {import("./selection.js").Filters} Filters */
/** @typedef {import("./selection.js").Ask} Ask */
/** @typedef {import("./types.d.ts").Schedule} Schedule */
/** @typedef {{ command: Command, name: string, title: string, meaning: string, isDangerous?: boolean }} Action */

/** @type {Action[]} */
const ACTIONS = [
  {
    command: "trigger",
    name: "Fire all now",
    title: "Fire all of these now?",
    meaning: "Their messages are delivered now. A one-shot does not fire again at its own time; a series goes on.",
    isDangerous: true,
  },
  {
    command: "pause",
    name: "Pause all",
    title: "Pause all of these?",
    meaning: "They do not fire until you resume them.",
  },
  {
    command: "resume",
    name: "Resume all",
    title: "Resume all of these?",
    meaning: "Those that are paused fire again. Missed firings follow their misfire policies.",
  },
  {
    command: "reschedule",
    name: "Reschedule all",
    title: "Change when all of these fire?",
    meaning:
      "Bounds, jitter, window and misfire policy go back to their defaults. Everything else about them stays as it is.",
  },
  {
    command: "cancel",
    name: "Cancel all",
    title: "Cancel all of these?",
    meaning: "They will not be delivered. This cannot be undone here.",
    isDangerous: true,
  },
];

/**
 * Return buttons for actions on all matches: with one command if that can select them, otherwise one by one.
 * @param {string} tenant
 * @param {Filters} filters
 * @param {Element} answers where the scheduler's answers are shown
 * @param {() => void} changed is called after each answer
 * @param {AbortSignal} signal
 */
export function bulkActions(tenant, filters, answers, changed, signal) {
  const path = `/api/v1/tenants/${encodeURIComponent(tenant)}`;

  /** @param {Action} action */
  async function act({ command, name, title, meaning, isDangerous = false }) {
    const fields = command === "reschedule" ? triggerFields(signal) : null;
    const isOne = isOneCommand(filters, command);
    const answered = new AbortController();
    const options = { signal: AbortSignal.any([answered.signal, signal]) };
    /** @type {Ask} */
    const get = (at, parameters) => request(`${path}/${at}${queryString(parameters)}`, options);
    const matching = isOne ? countOf(get, filters) : foundBy(get, filters);
    const body = [
      h("p", {}, matching.node, " ", userText(inWords(tenant, filters), 400), ", on all pages."),
      h("p", {}, meaning),
      !isOne &&
      h("p", {}, "They are changed one by one. One that is replaced or rescheduled meanwhile stays as it is."),
      fields?.node,
    ];
    const check = () => matching.wrong() ?? (fields && mistake(fields.read));
    const isYes = await ask(title, body, { yes: name, isDangerous, check });
    answered.abort();
    if (!isYes) return;
    const members = fields ? { trigger: fields.read() } : {};
    if (isOne) await changeAtOnce(command, members);
    else await changeEach(command, matching.found, members, answers, signal);
    changed();
  }

  /**
   * @param {Command} command
   * @param {{ trigger?: unknown }} members
   */
  async function changeAtOnce(command, members) {
    try {
      const options = { method: "POST", body: { ...selectionOf(filters), ...members } };
      /** @type {import("./types.d.ts").Result} */
      const result = await request(`${path}/schedules:${command}`, options);
      const outcome = result.outcome.charAt(0).toUpperCase() + result.outcome.slice(1);
      const text = `${outcome}: ${plural(result.count ?? 0, "schedule")}.`;
      replace(answers, h("div", { class: "notice good", role: "status" }, h("p", {}, h("strong", {}, text))));
    } catch (error) {
      replace(answers, failure(error));
    }
  }

  const buttons = ACTIONS.map((action) =>
    button(action.name, () => void act(action), { class: action.command === "cancel" ? "danger" : null })
  );
  return h(
    "details",
    { class: "bulk" },
    h("summary", {}, "Change all that match"),
    h("div", { class: "row", role: "group", "aria-label": "Actions on all that match" }, ...buttons),
  );
}

/** @typedef {{ node: Element, wrong: () => string | null, found: Schedule[] }} Matching `wrong` says why nothing can be done, or null. */

/**
 * Return an element that shows the number of matching schedules once it is known.
 * @param {Ask} get
 * @param {Filters} filters
 * @returns {Matching}
 */
function countOf(get, filters) {
  const node = counting();
  /** @type {string | null} */
  let wrong = WAIT;
  counted(get, filters).then(
    (found) => {
      node.textContent = howMany(found);
      wrong = found.number || !found.isAll ? null : NOTHING;
    },
    (error) => {
      node.textContent = `An unknown number of schedules (${error instanceof Error ? error.message : error})`;
      wrong = null;
    },
  );
  return { node, wrong: () => wrong, found: [] };
}

/**
 * Return the same, with the schedules themselves once all are loaded.
 * @param {Ask} get
 * @param {Filters} filters
 * @returns {Matching}
 */
function foundBy(get, filters) {
  const node = counting();
  /** @type {string | null} */
  let wrong = WAIT;
  /** @type {Schedule[]} */
  const schedules = [];
  const tell = (/** @type {number} */ number) => {
    node.textContent = `Counting schedules… ${count(number)} so far`;
  };
  (async () => {
    const now = Date.now();
    const times = { due_from: parseInstant(filters.due_from, now), due_to: parseInstant(filters.due_to, now) };
    return await listed(get, { ...filters, ...times }, tell);
  })().then(
    ({ found, isAll }) => {
      schedules.push(...found);
      node.textContent = howMany({ number: found.length, isAll });
      if (found.length > MOST_ONE_BY_ONE) wrong = TOO_MANY;
      else if (!isAll) wrong = TOO_LONG;
      else wrong = found.length ? null : NOTHING;
    },
    (error) => {
      node.textContent = "An unknown number of schedules";
      wrong = error instanceof Error ? error.message : String(error);
    },
  );
  return { node, wrong: () => wrong, found: schedules };
}

const WAIT = "Wait until the schedules are counted.";
const NOTHING = "There is nothing to change.";
const TOO_MANY = `At most ${
  count(MOST_ONE_BY_ONE)
} schedules can be changed with these filters. Narrow the search, or filter by the beginning of the id and by labels only.`;

const TOO_LONG = "There are too many schedules to search with these filters. Narrow the search.";

function counting() {
  return h("strong", { "aria-live": "polite" }, "Counting schedules…");
}
