/**
 * The settings of the worker that serves this page, and the origin of each. Read-only; secrets stay hidden.
 * @module
 */

import { request } from "./api.js";
import { h, replace } from "./elements.js";
import { MISSING } from "./format.js";
import { address, choice, failure, field, loading, table, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Configuration} Configuration */

const COLUMNS = [{ name: "Setting" }, { name: "Value" }, { name: "Origin" }, { name: "Meaning" }];
const ORIGINS = {
  default: "default",
  file: "settings file",
  context: "context",
  environment: "environment",
  option: "command line",
  node: "one of several processes",
};
const SHOWN = { all: "All settings", given: "Not default" };
const LONGEST = 1_000;

/**
 * @param {import("./types.d.ts").Context} context
 * @returns {import("./types.d.ts").View}
 */
export function configuration({ signal }) {
  const node = h("div", {}, loading());
  void show(node, signal);
  return { title: "Configuration", back: h("a", { href: address("health") }, "Health"), node };
}

/**
 * @param {Element} node
 * @param {AbortSignal} signal
 */
async function show(node, signal) {
  try {
    /** @type {Configuration} */
    const { url, settings } = await request("/api/v1/configuration", { signal });
    const list = h("div", { "aria-live": "polite" });
    const search = field("Name contains", { name: "name", oninput: () => draw() });
    const which = choice("Show", SHOWN, "all", { name: "origin", onchange: () => draw() });
    const [name, origin] = [
      /** @type {HTMLInputElement} */ (search.querySelector("input")),
      /** @type {HTMLSelectElement} */ (which.querySelector("select")),
    ];
    const draw = () => {
      const isShown = (/** @type {Configuration["settings"][0]} */ each) =>
        each.name.includes(name.value.trim()) && (origin.value === "all" || each.origin !== "default");
      replace(list, rows(settings.filter(isShown)));
    };
    draw();
    replace(
      node,
      h("p", {}, "Settings of the worker ", userText(url), ". Other workers can have others."),
      h("form", { class: "filters", onsubmit: (/** @type {Event} */ event) => event.preventDefault() }, search, which),
      list,
    );
  } catch (error) {
    if (!signal.aborted) replace(node, failure(error));
  }
}

/** @param {Configuration["settings"]} settings */
function rows(settings) {
  return table(
    "Settings",
    COLUMNS,
    settings.map(({ name, value, origin, variable, help }) => [
      h("span", { title: variable }, name),
      value === null ? MISSING : userText(value, LONGEST),
      ORIGINS[origin],
      h("span", { class: "note" }, help),
    ]),
  );
}
