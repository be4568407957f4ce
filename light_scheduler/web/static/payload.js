/**
 * Payloads decoded, as JSON, text and hex, part by part: a payload of a megabyte is too much for a page. Pure.
 * @module
 */

import { count } from "./format.js";
import { laidOut } from "./json_layout.js";

/** @typedef {import("./types.d.ts").Content} Content */
/** @typedef {import("./types.d.ts").Decoded} Decoded */
/** @typedef {"decoded" | "json" | "text" | "hex"} Form */
/** @typedef {{ total: number, unit: string, first: number, step: number, part: (from: number, to: number) => string }} Source
 *   `part` returns what is from one place to another; `first` units are shown at first, then `step` at a time. */

const TEXT_STEPS = { unit: "character", first: 20_000, step: 200_000 };
const HEX_STEPS = { unit: "byte", first: 4_096, step: 40_960 };
const LINE_BYTES = 16;

/**
 * Return the bytes of a content.
 * @param {Content} content
 * @returns {Uint8Array}
 */
export function bytesOf(content) {
  if (content.text !== undefined) return new TextEncoder().encode(content.text);
  return Uint8Array.from(atob(content.base64 ?? ""), (character) => character.charCodeAt(0));
}

/**
 * Return whether the bytes are hidden because this token may not see them.
 * @param {Content} content
 */
export function isLeftOut({ masked, text, base64 }) {
  return masked === true && text === undefined && base64 === undefined;
}

/**
 * Return the fingerprint (CRC-64-AVRO, hexadecimal) of the schema of a payload in Avro's single-object encoding; null for other payloads.
 * The encoding is c3 01, the fingerprint with its lowest byte first, and the value.
 * @param {Content} content
 */
export function avroFingerprint(content) {
  const bytes = bytesOf(content).subarray(0, 10);
  if (bytes.length < 10 || bytes[0] !== 0xc3 || bytes[1] !== 1) return null;
  return Array.from(bytes.subarray(2).reverse(), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * Return the forms in which a payload can be shown, the most useful one first, each with its content. JSON with masked fields is shown as
 * decoded.
 * @param {Content} content
 * @param {Decoded | null} [decoded]
 * @returns {Map<Form, Source>}
 */
export function formsOf(content, decoded = null) {
  const shown = decoded?.json === undefined ? decoded?.text : laidOut(decoded.json) ?? decoded.json;
  const first = decoded?.by === "json" ? "json" : "decoded";
  const others = isLeftOut(content) ? [] : [...formsOfBytes(content)];
  return new Map([
    .../** @type {[Form, Source][]} */ (shown === undefined ? [] : [[first, ofText(shown)]]),
    ...others.filter(([form]) => form !== "json" || !content.masked),
  ]);
}

/**
 * @param {Content} content
 * @returns {Map<Form, Source>}
 */
function formsOfBytes(content) {
  const bytes = bytesOf(content);
  const hex = { ...HEX_STEPS, total: bytes.length, part: partOfBytes.bind(null, bytes) };
  if (content.text === undefined) return new Map([["hex", hex], ["text", ofText(new TextDecoder().decode(bytes))]]);
  const json = laidOut(content.text);
  return new Map([
    .../** @type {[Form, Source][]} */ (json === null ? [] : [["json", ofText(json)]]),
    ["text", ofText(content.text)],
    ["hex", hex],
  ]);
}

/**
 * @param {string} text
 * @returns {Source}
 */
function ofText(text) {
  const edge = (/** @type {number} */ at) => (/[\ud800-\udbff]/.test(text[at - 1] ?? "") ? at - 1 : at);
  return { ...TEXT_STEPS, total: text.length, part: (from, to) => text.slice(edge(from), edge(to)) };
}

/**
 * Return bytes as lines of 16: offset, hexadecimal digits, and printable ASCII.
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} to
 */
function partOfBytes(bytes, from, to) {
  const lines = [];
  for (let at = from; at < Math.min(to, bytes.length); at += LINE_BYTES) {
    const line = bytes.subarray(at, Math.min(at + LINE_BYTES, to));
    const digits = Array.from(line, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const printable = Array.from(line, (byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${digits.padEnd(3 * LINE_BYTES - 1)}  ${printable}`);
  }
  return lines.join("\n");
}

/**
 * Return which part of a source is shown, or null for all of it: "Characters 1 to 20,000 of 1,000,000."
 * @param {Source} source
 * @param {number} from
 * @param {number} to
 */
export function shownPart({ total, unit }, from, to) {
  if (from === 0 && to >= total) return null;
  const name = unit.charAt(0).toUpperCase() + unit.slice(1);
  return `${name}s ${count(from + 1)} to ${count(Math.min(to, total))} of ${count(total)}.`;
}
