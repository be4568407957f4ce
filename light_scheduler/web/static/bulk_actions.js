/**
 * What can be done with all schedules that a list shows, on all of its pages: each action says first how many there are.
 * @module
 */

import { mistake } from "./actions.js";
import { queryString, request } from "./api.js";
import { ask } from "./dialog.js";
import { h, replace } from "./elements.js";
import { plural } from "./format.js";
import { counted, howMany, inWords, selectionOf, unknownFilters } from "./selection.js";
import { triggerFields } from "./trigger_fields.js";
import { button, failure, userText } from "./widgets.js";

/** @typedef {import("./selection.js").Command} Command */
/** @typedef {import("./selection.js").Filters} Filters */
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
    meaning: "Everything else about them stays as it is.",
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
 * Return buttons for what is done with all that match; those for which the filters are too fine are disabled, and say why.
 * @param {string} tenant
 * @param {Filters} filters
 * @param {Element} answers where the scheduler's answers are shown
 * @param {() => void} changed is called after each answer
 * @param {AbortSignal} signal
 */
export function bulkActions(tenant, filters, answers, changed, signal) {
  const path = `/api/v1/tenants/${encodeURIComponent(tenant)}`;
  const reasons = [...new Set(ACTIONS.flatMap(({ command }) => unknownFilters(filters, command)))];

  /** @param {Action} action */
  async function act({ command, name, title, meaning, isDangerous = false }) {
    const fields = command === "reschedule" ? triggerFields(signal) : null;
    const number = countOf(path, filters, signal);
    const body = [
      h("p", {}, number.node, " ", userText(inWords(tenant, filters), 400), ", on all pages."),
      h("p", {}, meaning),
      fields?.node,
    ];
    const check = () => number.wrong() ?? (fields && mistake(fields.read));
    if (!await ask(title, body, { yes: name, isDangerous, check })) return;
    const trigger = fields ? { trigger: fields.read() } : {};
    try {
      const options = { method: "POST", body: { ...selectionOf(filters), ...trigger } };
      /** @type {import("./types.d.ts").Result} */
      const result = await request(`${path}/schedules:${command}`, options);
      const outcome = result.outcome.charAt(0).toUpperCase() + result.outcome.slice(1);
      const text = `${outcome}: ${plural(result.count ?? 0, "schedule")}.`;
      replace(answers, h("div", { class: "notice good", role: "status" }, h("p", {}, h("strong", {}, text))));
    } catch (error) {
      replace(answers, failure(error));
    }
    changed();
  }

  const buttons = ACTIONS.map((action) =>
    button(action.name, () => void act(action), {
      disabled: unknownFilters(filters, action.command).length > 0,
      class: action.command === "cancel" ? "danger" : null,
      "aria-describedby": reasons.length ? "bulk-reason" : null,
    })
  );
  return h(
    "details",
    { class: "bulk" },
    h("summary", {}, "Change all that match"),
    h("div", { class: "row", role: "group", "aria-label": "Actions on all that match" }, ...buttons),
    reasons.length > 0 &&
      h(
        "p",
        { class: "note", id: "bulk-reason" },
        `These actions select by id and labels only. To use them, clear: ${reasons.join(", ")}.`,
      ),
  );
}

/**
 * Return an element that says how many schedules match once that is known, and a function that says why it is not, or null.
 * @param {string} path of the tenant
 * @param {Filters} filters
 * @param {AbortSignal} signal
 */
function countOf(path, filters, signal) {
  const node = h("strong", { "aria-live": "polite" }, "Counting schedules…");
  /** @type {string | null} */
  let wrong = "Wait until the schedules are counted.";
  counted((at, parameters) => request(`${path}/${at}${queryString(parameters)}`, { signal }), filters).then(
    (found) => {
      node.textContent = howMany(found);
      wrong = found.number || !found.isAll ? null : "There is nothing to change.";
    },
    (error) => {
      node.textContent = `An unknown number of schedules (${error instanceof Error ? error.message : error})`;
      wrong = null;
    },
  );
  return { node, wrong: () => wrong };
}
