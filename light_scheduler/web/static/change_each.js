/**
 * Changes schedules that no single command can select, one by one: each only in the version that the user confirmed.
 * @module
 */

import { request, schedulesPath } from "./api.js";
import { replace } from "./elements.js";
import { plural } from "./format.js";
import { report, sendEach } from "./one_by_one.js";

/** @typedef {import("./selection.js").Command} Command */
/** @typedef {import("./types.d.ts").Schedule} Schedule */

/** A browser has six connections to an HTTP/1.1 worker, one of which the page's stream may use. */
const AT_ONCE = 4;

/** @type {Record<Command, [string, string]>} */
const WORDS = {
  trigger: ["Firing", "fired"],
  pause: ["Pausing", "paused"],
  resume: ["Resuming", "resumed"],
  reschedule: ["Rescheduling", "rescheduled"],
  cancel: ["Cancelling", "cancelled"],
};

/**
 * Change schedules, and show the progress.
 * @param {Command} command
 * @param {Schedule[]} found
 * @param {{ trigger?: unknown }} members of the command
 * @param {Element} answers
 * @param {AbortSignal} signal
 */
export async function changeEach(command, found, members, answers, signal) {
  const [doing, done] = WORDS[command];
  const stop = new AbortController();
  const noun = plural(found.length, "schedule");
  const shown = report(found.length, { title: `${doing} ${noun}…`, label: doing, noun, done }, () => stop.abort());
  replace(answers, shown.node);
  shown.node.querySelector("button")?.focus();
  const change = (/** @type {string} */ _, /** @type {number} */ at) => changeOne(command, found[at], members);
  const ids = found.map(({ id }) => id);
  shown.end(await sendEach(ids, change, shown.tell, AbortSignal.any([stop.signal, signal]), AT_ONCE));
}

/**
 * @param {Command} command
 * @param {Schedule} schedule
 * @param {{ trigger?: unknown }} members
 */
async function changeOne(command, { tenant, id, version }, members) {
  if (id === "." || id === "..") throw new Error("a browser cannot request this id: use the command line");
  const path = schedulesPath(tenant, id);
  if (command === "cancel") return await request(`${path}?expected_version=${version}`, { method: "DELETE" });
  return await request(`${path}/${command}`, { method: "POST", body: { ...members, expected_version: version } });
}
