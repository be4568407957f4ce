/**
 * A payload, in the form that the user chooses, and headers.
 * @module
 */

import { h, replace } from "./elements.js";
import { size } from "./format.js";
import { bytesOf, formsOf, leftOut, shown } from "./payload.js";
import { button, empty, table, userLines, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Content} Content */
/** @typedef {import("./payload.js").Form} Form */

const NAMES = { json: "JSON", text: "Text", hex: "Hex" };

/**
 * Return a payload with buttons for its forms.
 * @param {Content | null} content null: a tombstone
 */
export function contentView(content) {
  if (content === null) return empty("The value is null: the message is a tombstone.");
  const bytes = bytesOf(content).length;
  if (!bytes) return empty("The value is empty.");
  const forms = formsOf(content);
  const body = h("div", {});
  const buttons = forms.map((form) => button(NAMES[form], () => show(form), { "aria-pressed": "false" }));

  /**
   * @param {Form} form
   * @param {number} [most]
   */
  function show(form, most) {
    const part = shown(content ?? {}, form, most);
    const rest = leftOut(part);
    buttons.forEach((each, at) => each.setAttribute("aria-pressed", String(forms[at] === form)));
    replace(
      body,
      form === "text" && content?.text === undefined &&
        h("p", { class: "note" }, "The bytes are not UTF-8: unreadable ones are shown as \ufffd."),
      userLines(part.text),
      rest && h("p", {}, `${rest}. `, button("Show all", () => show(form, Infinity))),
    );
  }

  show(forms[0]);
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
