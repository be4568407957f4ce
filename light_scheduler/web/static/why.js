/**
 * Explains in sentences why a schedule fired, fires or does not fire. It searches the history, so a button starts it.
 * @module
 */

import { queryString, request, schedulesPath } from "./api.js";
import { h, replace } from "./elements.js";
import { button, empty, exactInstant, failure, instant, loading, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Why} Why */

const LONGEST = 2_000;

/**
 * Return a section with a button that explains a schedule each time it is pressed.
 * @param {{ tenant: string, id: string }} schedule
 * @param {() => number} since how far back the history is searched, UTC epoch ms
 * @param {AbortSignal} signal
 */
export function whySection({ tenant, id }, since, signal) {
  const answer = h("div", { "aria-live": "polite" });
  const what = "The scheduler explains in sentences why it fired, when it fires next, or why it does not.";
  const start = button("Explain", () => void explain(), { title: what });

  async function explain() {
    start.disabled = true;
    replace(answer, loading("Searching the history…"));
    try {
      /** @type {Why} */
      const why = await request(`${schedulesPath(tenant, id)}/why${queryString({ since: since() })}`, { signal });
      replace(answer, ...sentences(why));
    } catch (error) {
      if (!signal.aborted) replace(answer, failure(error));
    } finally {
      start.disabled = false;
    }
  }

  return h(
    "section",
    { class: "why", "aria-label": "Why" },
    h("div", { class: "row heading" }, h("h2", {}, "Why"), start),
    answer,
  );
}

/** @param {Why} why */
function sentences({ summary, events, complete, searched_from: from }) {
  return [
    h("p", { class: "summary" }, userText(summary, LONGEST)),
    events.length
      ? h(
        "ol",
        { class: "firings" },
        ...events.map(({ at, text }) => h("li", {}, exactInstant(at), " ", userText(text, LONGEST))),
      )
      : empty("The history has no event of it in this time."),
    !complete && h("p", { class: "note" }, "The history was read back to ", instant(from), " only."),
  ];
}
