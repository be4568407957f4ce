/**
 * Common elements of all views: instants, untrusted text, states, and placeholders for empty, loading and failed content.
 * @module
 */

import { ApiError, queryString } from "./api.js";
import { h } from "./elements.js";
import { local, MISSING, relative, time, utc, whyMissing } from "./format.js";
import { timeMode } from "./preferences.js";
import { pieces, shortened } from "./text.js";
import { ticking } from "./ticker.js";

/** @typedef {import("./elements.js").Child} Child */

const LONGEST_IN_A_LINE = 160;
const SHORT = 20; // characters: text up to this length is not broken within a word

const PHONE = "(max-width: 700px)";

/** Number of runs of invisible characters that get their own elements. */
const MOST_MARKS = 2_000;

/**
 * Return an instant in the user's preferred notation; the tooltip has it in UTC.
 * @param {number | null | undefined} at UTC epoch ms
 * @param {number} [now] UTC epoch ms
 */
export function instant(at, now = Date.now()) {
  if (at == null) return h("span", { class: "missing" }, MISSING);
  const mode = timeMode();
  return h("time", { title: utc(at), ...(mode === "relative" ? ticking(at, now) : {}) }, time(at, mode, now));
}

/**
 * Return an instant to the millisecond, in UTC if times are shown in UTC, and its distance from now.
 * @param {number} at UTC epoch ms
 * @param {number} [now] UTC epoch ms
 */
export function exactInstant(at, now = Date.now()) {
  const exact = timeMode() === "utc" ? utc(at) : local(at);
  return [
    h("time", { title: utc(at) }, exact),
    " ",
    h("span", { class: "note", ...ticking(at, now) }, relative(at, now)),
  ];
}

/**
 * Return untrusted text in one line. It cannot change how the surrounding page reads.
 * @param {string} text
 * @param {number} [most] characters
 */
export function userText(text, most = LONGEST_IN_A_LINE) {
  const isShort = text.length <= SHORT && lengthOf(pieces(text)) <= SHORT;
  return h("bdi", { class: isShort ? "user short" : "user" }, ...marked(shortened(text, most), false));
}

/** @param {import("./text.js").Piece[]} found */
function lengthOf(found) {
  return found.reduce((length, { text }) => length + text.length, 0);
}

/**
 * Return untrusted text with its lines.
 * @param {string} text
 */
export function userLines(text) {
  return h("pre", { class: "user", dir: "ltr", tabindex: 0 }, ...marked(text, true));
}

/**
 * @param {string} text
 * @param {boolean} lines
 */
function marked(text, lines) {
  const found = pieces(text, { lines });
  // A browser takes many seconds to lay out a hundred thousand elements, so further marks are plain text.
  if (found.length > 2 * MOST_MARKS) {
    return [found.map((piece) => (piece.hidden ? `[${piece.text}]` : piece.text)).join("")];
  }
  return found.map((piece) =>
    piece.hidden
      ? h("span", { class: "hidden-character", title: "Invisible or stacked characters" }, piece.text)
      : piece.text
  );
}

/** States with their colour: good, busy, bad or off. */
const TONES = {
  running: "good",
  active: "good",
  ok: "good",
  "in force": "good",
  pending: "good",
  restoring: "busy",
  created: "busy",
  fenced: "busy",
  assigned: "busy",
  awaiting: "busy",
  warn: "busy",
  paused: "off",
  closing: "off",
  closed: "off",
  failed: "bad",
  fail: "bad",
  "not in force": "bad",
  deleted: "bad",
  unreachable: "bad",
  unowned: "bad",
};

/**
 * Return a state with a mark that has its own shape and colour.
 * @param {string} state
 */
export function badge(state) {
  const tone = /** @type {Record<string, string>} */ (TONES)[state] ?? "off";
  return h("span", { class: `badge ${tone}` }, state);
}

/**
 * Return the address of a view.
 * @param {string} view
 * @param {Record<string, string | number | null | undefined>} [parameters]
 */
export function address(view, parameters = {}) {
  return `#/${view}${queryString(parameters)}`;
}

/**
 * Return a form of filters, which phones show on demand.
 * @param {Element} form
 * @param {number} active filters that are set
 */
export function filterBox(form, active) {
  const isPhone = matchMedia(PHONE).matches;
  return h(
    "details",
    { class: "filter-box", open: !isPhone },
    h("summary", {}, `Filters${active ? ` (${active})` : ""}`),
    form,
  );
}

/** Open the filters when a phone is turned to landscape: a wider page has no button to open them. */
export function startUnfolding() {
  matchMedia(PHONE).addEventListener("change", ({ matches: isPhone }) => {
    if (isPhone) return;
    for (const box of document.querySelectorAll(".filter-box")) box.setAttribute("open", "");
  });
}

/**
 * Return a list of names and values.
 * @param {...[string, Child]} rows
 */
export function facts(...rows) {
  return h(
    "dl",
    { class: "facts" },
    ...rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
  );
}

/**
 * Return a table, which phones show as a list of cards. A cell is one child; numeric columns are aligned right. The heading of a column
 * with an address is a link that sorts by it.
 * @param {string} caption
 * @param {{ name: string, number?: boolean, href?: string, isSorted?: boolean }[]} columns
 * @param {Child[][]} rows
 */
export function table(caption, columns, rows) {
  /** @param {{ number?: boolean }} column */
  const cell = (column) => (column.number ? "number" : null);
  /** @param {{ name: string, number?: boolean, href?: string, isSorted?: boolean }} column */
  const heading = (column) =>
    h(
      "th",
      { scope: "col", class: cell(column), "aria-sort": column.isSorted ? "ascending" : null },
      column.href ? h("a", { href: column.href }, column.name) : column.name,
    );
  return h(
    "div",
    { class: columns.length > 2 ? "table" : "table narrow", role: "region", "aria-label": caption, tabindex: 0 },
    h(
      "table",
      {},
      h("caption", { class: "unseen" }, caption),
      h(
        "thead",
        {},
        h("tr", {}, ...columns.map(heading)),
      ),
      h(
        "tbody",
        {},
        ...rows.map((row) =>
          h(
            "tr",
            {},
            ...row.map((child, at) =>
              h("td", { class: cell(columns[at]), "data-name": columns[at].name }, h("div", {}, child))
            ),
          )
        ),
      ),
    ),
  );
}

/**
 * Return a placeholder for empty content, with advice.
 * @param {string} what
 * @param {...Child} next
 */
export function empty(what, ...next) {
  return h("div", { class: "empty" }, h("p", {}, what), ...next);
}

/** @param {string} [what] */
export function loading(what = "Loading…") {
  return h("p", { class: "loading", role: "status" }, what);
}

/**
 * Describe a failure, with the missing partitions and, where it may help, a link that reloads the page.
 * @param {unknown} error
 */
export function failure(error) {
  const missing = error instanceof ApiError ? error.problem?.missing ?? [] : [];
  const what = error instanceof ApiError && error.mayAskAgain
    ? [error.reason, " ", h("a", { href: location.hash || "#/" }, "Try again")]
    : [error instanceof Error ? error.message : String(error)];
  return h(
    "div",
    { class: "notice bad", role: "alert" },
    h("p", {}, ...what),
    missing.length > 0 && h(
      "ul",
      {},
      ...missing.slice(0, 20).map((each) =>
        h("li", {}, userText(`${each.topic}[${each.partition}]`), `: ${whyMissing(each)}`)
      ),
    ),
  );
}

/**
 * Return a button.
 * @param {string} label
 * @param {() => void} onclick
 * @param {Record<string, import("./elements.js").Property>} [properties]
 */
export function button(label, onclick, properties = {}) {
  return h("button", { type: "button", onclick, ...properties }, label);
}

/**
 * Return a drop-down list.
 * @param {string} label
 * @param {Record<string, string>} choices value -> what it is called
 * @param {string} value
 * @param {Record<string, import("./elements.js").Property>} [properties]
 */
export function choice(label, choices, value, properties = {}) {
  const options = Object.entries(choices).map(([key, name]) =>
    h("option", { value: key, selected: key === value }, name)
  );
  return h("label", {}, label, h("select", properties, ...options));
}

/**
 * Return a field for text.
 * @param {string} label
 * @param {Record<string, import("./elements.js").Property>} properties
 */
export function field(label, properties) {
  return h("label", {}, label, h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...properties }));
}
