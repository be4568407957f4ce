/**
 * A payload, in the form that the user chooses, and headers.
 * @module
 */

import { h, replace } from "./elements.js";
import { size } from "./format.js";
import { avroFingerprint, bytesOf, formsOf, isLeftOut, shownPart } from "./payload.js";
import { button, empty, table, userLines, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Content} Content */
/** @typedef {import("./types.d.ts").Decoded} Decoded */
/** @typedef {import("./payload.js").Form} Form */

const NAMES = { decoded: "Decoded", json: "JSON", text: "Text", hex: "Hex" };
const MASK = "********";

/**
 * Return a payload with buttons for its forms. A large one is shown one part at a time, so that the page stays small however many marks for
 * invisible characters it needs. A payload with masked fields is shown as it was sent only if the user selects that.
 * @param {Content | null} content null: a tombstone
 * @param {Decoded | null} [decoded]
 */
export function contentView(content, decoded = null) {
  if (content === null) return empty("The value is null: the message is a tombstone.");
  const forms = formsOf(content, decoded);
  const bytes = forms.get("hex")?.total ?? 0;
  if (!bytes && !isLeftOut(content) && !decoded) return empty("The value is empty.");
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

  const fingerprint = decoded ? null : avroFingerprint(content);
  const isShown = names.length > 0 && (!content.masked || names[0] === "decoded" || names[0] === "json");
  if (isShown) show(names[0]);
  return h(
    "div",
    {},
    names.length > 0 && h(
      "div",
      { class: "row", role: "group", "aria-label": "Form" },
      ...buttons,
      bytes > 0 && h("span", { class: "note" }, size(bytes)),
    ),
    decoded?.error !== undefined &&
      h("p", { class: "note" }, `${NOT_DECODED[decoded.by]}: `, userText(decoded.error, 1_000)),
    fingerprint !== null &&
      h(
        "p",
        { class: "note" },
        `Avro in single-object encoding, with the schema of fingerprint ${fingerprint}. `,
        "Put the schema into a folder, and name the folder in the setting payload_schemas.",
      ),
    content.masked && h("p", { class: "note" }, maskedNote(content, isShown)),
    body,
  );
}

const NOT_DECODED = {
  hook: "The payload decoder failed",
  avro: "It could not be read as Avro",
  json: "It could not be read as JSON",
};

/**
 * @param {Content} content
 * @param {boolean} isDecoded
 */
function maskedNote(content, isDecoded) {
  const what = isDecoded ? "Fields are masked." : "Fields are masked, and no decoder knows this payload.";
  return isLeftOut(content)
    ? `${what} Only a token with the role write can see it as it was sent.`
    : `${what} Text and Hex show it as it was sent.`;
}

/**
 * Return headers as a table. Masked values are shown only if the user asks for them.
 * @param {import("./types.d.ts").Header[]} headers
 */
export function headersView(headers) {
  if (!headers.length) return empty("The message has no headers of its own.");
  return table(
    "Headers",
    [{ name: "Name" }, { name: "Value" }],
    headers.map(({ name, value }) => [userText(name), value?.masked ? maskedLine(value) : line(value)]),
  );
}

/** @param {Content} value */
function maskedLine(value) {
  const shown = h("span", {}, MASK);
  if (isLeftOut(value)) return shown;
  const reveal = button("Show", () => replace(shown, line(value)));
  return [shown, " ", reveal];
}

/**
 * Return bytes in one line, as text or hexadecimal digits.
 * @param {Content | null} value
 */
export function line(value) {
  if (value === null) return h("span", { class: "missing" }, "null");
  if (value.text !== undefined) return userText(value.text, 1_000);
  const digits = Array.from(bytesOf(value).subarray(0, 64), (byte) => byte.toString(16).padStart(2, "0"));
  return h("code", {}, digits.join(" "));
}
