/**
 * Payloads as JSON, text and hex. Pure.
 * @module
 */

import { count } from "./format.js";

/** @typedef {import("./types.d.ts").Content} Content */
/** @typedef {"json" | "text" | "hex"} Form */
/** @typedef {{ text: string, left: number, unit: string }} Shown What is shown, and how much of it is left out. */

export const SHOWN_AT_FIRST = 20_000;

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
 * Return the forms in which bytes can be shown, the most telling one first.
 * @param {Content} content
 * @returns {Form[]}
 */
export function formsOf(content) {
  if (content.text === undefined) return ["hex", "text"];
  return asJson(content.text) === null ? ["text", "hex"] : ["json", "text", "hex"];
}

/**
 * Return a content in a form, at most so many characters of it.
 * @param {Content} content
 * @param {Form} form
 * @param {number} [most]
 * @returns {Shown}
 */
export function shown(content, form, most = SHOWN_AT_FIRST) {
  if (form === "hex") return hex(bytesOf(content), most);
  const text = content.text ?? new TextDecoder().decode(bytesOf(content));
  const whole = form === "json" ? asJson(text) ?? text : text;
  return { text: whole.slice(0, most), left: Math.max(0, whole.length - most), unit: "character" };
}

/**
 * Return JSON with an indentation, or null if text is not JSON. Large numbers would lose digits: such text stays as it is.
 * @param {string} text
 */
function asJson(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object") return text.trim();
    return hasLongNumbers(text) ? text : JSON.stringify(value, null, 2);
  } catch {
    return null;
  }
}

/** @param {string} text */
function hasLongNumbers(text) {
  return /\d{16,}|\d[eE][+-]?\d/.test(text.replace(/"(?:[^"\\]|\\.)*"/g, '""'));
}

/**
 * Return bytes as lines of 16: offset, hexadecimal digits, and the printable ones of ASCII.
 * @param {Uint8Array} bytes
 * @param {number} most characters
 * @returns {Shown}
 */
function hex(bytes, most) {
  const lineLength = 16;
  const lines = Math.max(1, Math.floor(most / 76));
  const end = Math.min(bytes.length, lines * lineLength);
  const text = [];
  for (let at = 0; at < end; at += lineLength) {
    const line = bytes.subarray(at, Math.min(at + lineLength, end));
    const digits = Array.from(line, (byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const printable = Array.from(line, (byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    text.push(`${at.toString(16).padStart(8, "0")}  ${digits.padEnd(3 * lineLength - 1)}  ${printable}`);
  }
  return { text: text.join("\n"), left: bytes.length - end, unit: "byte" };
}

/**
 * Return a notice of what is left out, or null.
 * @param {Shown} shown
 */
export function leftOut(shown) {
  return shown.left ? `${count(shown.left)} more ${shown.unit}${shown.left === 1 ? "" : "s"}` : null;
}
