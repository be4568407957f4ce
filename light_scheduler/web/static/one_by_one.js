/**
 * Sends requests one by one, with their progress, the failures, and a button to stop.
 * @module
 */

import { h, replace } from "./elements.js";
import { count } from "./format.js";
import { button, userText } from "./widgets.js";

/** @typedef {{ sent: number, failed: { name: string, why: string }[] }} Progress */

/** Number of failures that are shown. */
const SHOWN = 10;

/**
 * Send a request for each name, until all are done or `signal` aborts. A failure does not stop the others.
 * @param {string[]} names
 * @param {(name: string, at: number) => Promise<unknown>} send
 * @param {(progress: Progress) => void} tell is called after each
 * @param {AbortSignal} signal
 * @param {number} [atOnce] how many are under way at a time
 * @returns {Promise<Progress>}
 */
export async function sendEach(names, send, tell, signal, atOnce = 1) {
  /** @type {Progress} */
  let progress = { sent: 0, failed: [] };
  const waiting = names.entries();

  async function work() {
    for (const [at, name] of waiting) {
      if (signal.aborted) break;
      try {
        await send(name, at);
        progress = { ...progress, sent: progress.sent + 1 };
      } catch (error) {
        const why = error instanceof Error ? error.message : String(error);
        progress = { ...progress, failed: [...progress.failed, { name, why }] };
      }
      tell(progress);
    }
  }

  await Promise.all(Array.from({ length: atOnce }, work));
  return progress;
}

/**
 * Return a notice with the progress of requests, and functions to update it.
 * @param {number} total
 * @param {{ title: string, label: string, noun: string, done: string, undone?: string }} words "Sending 3 letters again…",
 *   "Sent again", "3 letters", "sent again", and what the others were not, if that differs: "sent"
 * @param {() => void} stop
 */
export function report(total, { title, label, noun, done, undone = done }, stop) {
  const bar = h("progress", { max: total, value: 0, "aria-label": label });
  const text = h("p", { role: "status" }, title);
  const failures = h("ul", {});
  const stopping = button("Stop", stop);
  const node = h("div", { class: "notice", tabindex: -1 }, text, failures, h("div", { class: "row" }, bar, stopping));

  /** @param {Progress} progress */
  function tell({ sent, failed }) {
    bar.value = sent + failed.length;
    replace(
      failures,
      ...failed.slice(0, SHOWN).map(({ name, why }) => h("li", {}, userText(`${name}: ${why}`, 300))),
    );
  }

  /** @param {Progress} progress */
  function end({ sent, failed }) {
    const left = total - sent - failed.length;
    const stopped = left ? ` Stopped: ${count(left)} were not ${undone}.` : "";
    text.textContent = `${count(sent)} of ${noun} ${done}, ${count(failed.length)} failed.${stopped}`;
    node.classList.add(failed.length || stopped ? "bad" : "good");
    bar.remove();
    stopping.remove();
    node.focus();
  }

  return { node, tell, end };
}
