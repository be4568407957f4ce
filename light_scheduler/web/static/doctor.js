/**
 * The checks of `light-scheduler doctor` on the worker that serves this page. They take seconds, so a button starts them.
 * @module
 */

import { request } from "./api.js";
import { h, replace } from "./elements.js";
import { MISSING } from "./format.js";
import { address, badge, button, exactInstant, failure, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Doctor} Doctor */

const COLUMNS = [{ name: "Check" }, { name: "State" }, { name: "Result" }, { name: "To do" }];
const LONGEST = 2_000;

/**
 * Return a section with a button that runs the checks.
 * @param {AbortSignal} signal
 */
export function doctorSection(signal) {
  const answer = h("div", { "aria-live": "polite" });
  const start = button("Run checks", () => void run());

  async function run() {
    start.disabled = true;
    replace(answer, loading("Checking broker, topics, rights, access, clock and disk…"));
    try {
      replace(answer, ...found(await request("/api/v1/doctor", { signal })));
    } catch (error) {
      if (!signal.aborted) replace(answer, failure(error));
    } finally {
      start.disabled = false;
    }
  }

  const settings = h("a", { href: address("configuration") }, "Configuration");
  const heading = h(
    "div",
    { class: "row heading" },
    h("h2", {}, "Checks"),
    start,
    settings,
  );
  return h("section", { "aria-label": "Checks" }, heading, answer);
}

/** @param {Doctor} doctor */
function found({ url, at, ok, checks }) {
  return [
    h(
      "p",
      { class: ok ? null : "warning" },
      ok ? "No check failed where " : "A check failed where ",
      userText(url),
      " runs. Checked: ",
      exactInstant(at),
    ),
    table(
      "What the checks found",
      COLUMNS,
      checks.map(({ name, status, detail, fix }) => [
        name,
        badge(status),
        userText(detail, LONGEST),
        fix === null ? MISSING : userText(fix, LONGEST),
      ]),
    ),
  ];
}
