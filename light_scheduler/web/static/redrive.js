/**
 * Dead letters that are sent again, one after the other.
 * @module
 */

import { request } from "./api.js";
import { ask } from "./dialog.js";
import { h, replace } from "./elements.js";
import { count, plural } from "./format.js";
import { button, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").DeadLetter} DeadLetter */
/** @typedef {{ sent: number, failed: { letter: string, why: string }[] }} Progress */

/** Failures that are shown. */
const SHOWN = 10;

/**
 * Send letters again until they are through, or `signal` comes. One that fails does not stop the others.
 * @param {string[]} letters
 * @param {(letter: string) => Promise<unknown>} send
 * @param {(progress: Progress) => void} tell is called after each
 * @param {AbortSignal} signal
 * @returns {Promise<Progress>}
 */
export async function sendEach(letters, send, tell, signal) {
  /** @type {Progress} */
  let progress = { sent: 0, failed: [] };
  for (const letter of letters) {
    if (signal.aborted) break;
    try {
      await send(letter);
      progress = { ...progress, sent: progress.sent + 1 };
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      progress = { ...progress, failed: [...progress.failed, { letter, why }] };
    }
    tell(progress);
  }
  return progress;
}

/**
 * Return a button that sends all letters of a list again. Those that were dropped have no bytes to send.
 * @param {DeadLetter[]} letters
 * @param {Element} answers where the progress is shown
 * @param {AbortSignal} signal
 */
export function redriveAll(letters, answers, signal) {
  const names = letters.filter(({ dropped }) => !dropped).map(({ letter }) => letter);
  const dropped = letters.length - names.length;

  async function start() {
    const body = [
      h(
        "p",
        {},
        `${
          plural(names.length, "dead letter")
        } on this page: commands go to their commands topics, firings to their targets.`,
      ),
      dropped > 0 && h("p", {}, `${plural(dropped, "letter")} without bytes cannot be sent.`),
      h("p", {}, "Nothing marks a letter as sent again: each time, it is sent once more."),
    ];
    if (!await ask("Send all of these again?", body, { yes: "Send all again" })) return;
    const stop = new AbortController();
    const shown = report(names.length, () => stop.abort());
    replace(answers, shown.node);
    shown.node.querySelector("button")?.focus();
    const send = (/** @type {string} */ letter) =>
      request(`/api/v1/dead-letters/${encodeURIComponent(letter)}/redrive`, { method: "POST" });
    shown.end(await sendEach(names, send, shown.tell, AbortSignal.any([stop.signal, signal])));
  }

  return button(`Send all ${count(names.length)} again`, () => void start(), { disabled: !names.length });
}

/**
 * Return a notice of how far the letters are, and functions that bring it up to date.
 * @param {number} total
 * @param {() => void} stop
 */
function report(total, stop) {
  const bar = h("progress", { max: total, value: 0, "aria-label": "Sent again" });
  const text = h("p", { role: "status" }, `Sending ${plural(total, "letter")} again…`);
  const failures = h("ul", {});
  const stopping = button("Stop", stop);
  const node = h("div", { class: "notice", tabindex: -1 }, text, failures, h("div", { class: "row" }, bar, stopping));

  /** @param {Progress} progress */
  function tell({ sent, failed }) {
    bar.value = sent + failed.length;
    replace(
      failures,
      ...failed.slice(0, SHOWN).map(({ letter, why }) => h("li", {}, userText(`${letter}: ${why}`, 300))),
    );
  }

  /** @param {Progress} progress */
  function end({ sent, failed }) {
    const done = sent + failed.length;
    const left = done < total ? ` Stopped: ${count(total - done)} were not sent.` : "";
    text.textContent = `${count(sent)} of ${plural(total, "letter")} sent again, ${
      count(failed.length)
    } failed.${left}`;
    node.classList.add(failed.length || left ? "bad" : "good");
    bar.remove();
    stopping.remove();
    node.focus();
  }

  return { node, tell, end };
}
