/**
 * Actions on one schedule: each asks for confirmation, and shows the scheduler's answer.
 * @module
 */

import { request, schedulesPath } from "./api.js";
import { againOf } from "./definition.js";
import { ask } from "./dialog.js";
import { h, replace } from "./elements.js";
import { triggerFields } from "./trigger_fields.js";
import { button, failure, instant, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").ScheduleDetail} ScheduleDetail */
/** @typedef {import("./types.d.ts").Result} Result */

/**
 * Return buttons for all actions on a schedule.
 * @param {ScheduleDetail} found
 * @param {Element} answers where the scheduler's answers are shown
 * @param {() => void} changed is called after each answer
 * @param {AbortSignal} signal
 */
export function actions(found, answers, changed, signal) {
  const path = schedulesPath(found.tenant, found.id);
  const name = () => userText(found.id, 200);
  const version = { expected_version: found.version };

  /**
   * @param {string} address
   * @param {{ method: string, body?: unknown }} options
   * @param {import("./elements.js").Child} [next]
   */
  async function send(address, options, next) {
    try {
      replace(answers, answer(await request(address, options)), next);
      answers.firstElementChild?.scrollIntoView({ block: "nearest" });
    } catch (error) {
      replace(answers, failure(error));
    }
    changed();
  }

  async function trigger() {
    const what = found.trigger.at === undefined
      ? "The series goes on as planned."
      : "It does not fire again at its own time.";
    const body = [h("p", {}, "Deliver ", name(), " to ", userText(found.target.topic), " now."), h("p", {}, what)];
    if (await ask("Fire now?", body, { yes: "Fire now" })) {
      await send(`${path}/trigger`, { method: "POST", body: version });
    }
  }

  async function pause() {
    const body = h("p", {}, name(), " does not fire until you resume it.");
    if (await ask("Pause?", body, { yes: "Pause" })) await send(`${path}/pause`, { method: "POST", body: version });
  }

  async function resume() {
    const body = h("p", {}, name(), ` fires again. Missed firings: ${found.misfire}.`);
    if (await ask("Resume?", body, { yes: "Resume" })) await send(`${path}/resume`, { method: "POST", body: version });
  }

  async function reschedule() {
    const fields = triggerFields(signal);
    const resets = "Bounds, jitter, window and misfire policy go back to their defaults. Everything else about ";
    const body = [h("p", {}, resets, name(), " stays as it is."), fields.node];
    if (await ask("Change when it fires?", body, { yes: "Reschedule", check: () => mistake(fields.read) })) {
      await send(`${path}/reschedule`, { method: "POST", body: { ...version, trigger: fields.read() } });
    }
  }

  async function cancel() {
    const again = againOf(found);
    const until = found.trigger.at === undefined ? "right after" : "until its time has come";
    const note = again ? `You can schedule it again ${until}.` : "This cannot be undone here.";
    const body = [h("p", {}, name(), " will not be delivered."), h("p", {}, note)];
    if (!await ask("Cancel this schedule?", body, { yes: "Cancel schedule", isDangerous: true })) return;
    const undo = again && button("Undo: schedule it again", () => void send(path, { method: "PUT", body: again }));
    await send(`${path}?expected_version=${found.version}`, { method: "DELETE" }, undo);
  }

  return h(
    "div",
    { class: "row actions", role: "group", "aria-label": "Actions" },
    button("Fire now", () => void trigger()),
    found.state === "paused" ? button("Resume", () => void resume()) : button("Pause", () => void pause()),
    button("Reschedule", () => void reschedule()),
    button("Cancel", () => void cancel(), { class: "danger" }),
  );
}

/**
 * Return the message of the error that `read` throws, or null.
 * @param {() => unknown} read
 */
export function mistake(read) {
  try {
    read();
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * Return the scheduler's answer to a command as a notice.
 * @param {Result} result
 * @param {...import("./elements.js").Child} more
 */
export function answer({ outcome, id, next_due: due, reason }, ...more) {
  return h(
    "div",
    { class: "notice good", role: "status" },
    h(
      "p",
      {},
      h("strong", {}, sentence(outcome)),
      id !== null && [": ", userText(id, 200)],
      due !== null && [". Next due: ", instant(due)],
      reason !== null && [". ", userText(reason, 400)],
    ),
    more,
  );
}

/** @param {string} outcome */
function sentence(outcome) {
  return outcome.charAt(0).toUpperCase() + outcome.slice(1).replace("_", " ");
}
