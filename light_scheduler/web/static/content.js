/**
 * A payload, in the form that the user chooses, and headers.
 * @module
 */

import { h, replace } from "./elements.js";
import { size } from "./format.js";
import { bytesOf, formsOf, shownPart } from "./payload.js";
import { button, empty, table, userLines, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Content} Content */
/** @typedef {import("./payload.js").Form} Form */

const NAMES = { json: "JSON", text: "Text", hex: "Hex" };

/**
 * Return a payload with buttons for its forms. A large one is shown in parts, each in place of the last: however many marks for invisible
 * characters it needs, the page stays small.
 * @param {Content | null} content null: a tombstone
 */
export function contentView(content) {
  if (content === null) return empty("The value is null: the message is a tombstone.");
  const forms = formsOf(content);
  const bytes = forms.get("hex")?.total ?? 0;
  if (!bytes) return empty("The value is empty.");
  const body = h("div", {});
  const names = [...forms.keys()];
  const buttons = names.map((form) => button(NAMES[form], () => show(form), { "aria-pressed": "false" }));

  /**
   * @param {Form} form
   * @param {number} [from]
   * @param {number} [to]
   */
  function show(form, from = 0, to = 0) {
    const source = /** @type {import("./payload.js").Source} */ (forms.get(form));
    const end = to || source.first;
    const go = (/** @type {number} */ start) => show(form, Math.max(0, start), Math.max(0, start) + source.step);
    buttons.forEach((each, at) => each.setAttribute("aria-pressed", String(names[at] === form)));
    const part = shownPart(source, from, end);
    replace(
      body,
      form === "text" && content?.text === undefined &&
        h("p", { class: "note" }, "The bytes are not UTF-8: unreadable ones are shown as \ufffd."),
      userLines(source.part(from, end)),
      part && h(
        "div",
        { class: "row" },
        h("span", { class: "note", role: "status" }, part),
        from > 0 && button("Part before", () => go(from - source.step)),
        end < source.total && (to ? button("Next part", () => go(end)) : button("Show more", () => go(0))),
      ),
    );
  }

  show(names[0]);
  return h(
    "div",
    {},
    h(
      "div",
      { class: "row", role: "group", "aria-label": "Form" },
      ...buttons,
      h("span", { class: "note" }, size(bytes)),
    ),
    body,
  );
}

/**
 * Return headers as a table.
 * @param {import("./types.d.ts").Header[]} headers
 */
export function headersView(headers) {
  if (!headers.length) return empty("The message has no headers of its own.");
  return table(
    "Headers",
    [{ name: "Name" }, { name: "Value" }],
    headers.map(({ name, value }) => [userText(name), line(value)]),
  );
}

/**
 * Return bytes in one line: text, or hexadecimal digits.
 * @param {Content | null} value
 */
export function line(value) {
  if (value === null) return h("span", { class: "missing" }, "null");
  if (value.text !== undefined) return userText(value.text, 1_000);
  const digits = Array.from(bytesOf(value).subarray(0, 64), (byte) => byte.toString(16).padStart(2, "0"));
  return h("code", {}, digits.join(" "));
}
