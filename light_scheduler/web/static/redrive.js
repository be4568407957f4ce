/**
 * Sends dead letters again, one after the other.
 * @module
 */

import { request } from "./api.js";
import { ask } from "./dialog.js";
import { h, replace } from "./elements.js";
import { count, plural } from "./format.js";
import { report, sendEach } from "./one_by_one.js";
import { button } from "./widgets.js";

/** @typedef {import("./types.d.ts").DeadLetter} DeadLetter */

/**
 * Return a button that sends all letters of a list again. Letters that lack something cannot be sent.
 * @param {DeadLetter[]} letters
 * @param {Element} answers where the progress is shown
 * @param {AbortSignal} signal
 */
export function redriveAll(letters, answers, signal) {
  const names = letters.filter(({ lacks }) => lacks === null).map(({ letter }) => letter);
  const incomplete = letters.length - names.length;

  async function start() {
    const body = [
      h(
        "p",
        {},
        `${
          plural(names.length, "dead letter")
        } on this page: commands go to their commands topics, firings to their targets.`,
      ),
      incomplete > 0 && h("p", {}, `${plural(incomplete, "letter")} with something left out cannot be sent.`),
      h("p", {}, "Letters are not marked as sent: each time, they are sent once more."),
    ];
    if (!await ask("Send all of these again?", body, { yes: "Send all again" })) return;
    const stop = new AbortController();
    const letters = plural(names.length, "letter");
    const words = {
      title: `Sending ${letters} again…`,
      label: "Sent again",
      noun: letters,
      done: "sent again",
      undone: "sent",
    };
    const shown = report(names.length, words, () => stop.abort());
    replace(answers, shown.node);
    shown.node.querySelector("button")?.focus();
    const send = (/** @type {string} */ letter) =>
      request(`/api/v1/dead-letters/${encodeURIComponent(letter)}/redrive`, { method: "POST" });
    shown.end(await sendEach(names, send, shown.tell, AbortSignal.any([stop.signal, signal])));
  }

  return button(`Send all ${count(names.length)} again`, () => void start(), { disabled: !names.length });
}
