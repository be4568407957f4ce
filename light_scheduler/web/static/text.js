/**
 * Untrusted text: ids, labels, payloads. It always stays text, and invisible characters are named. Pure.
 * @module
 */

/** @typedef {{ text: string, hidden: boolean }} Piece A stretch of text; a hidden one names characters that cannot be seen, or too many on one place. */

// Control characters, line separators, annotation marks, everything that is invisible by default (soft hyphen, marks that change the
// direction, zero-width characters, fillers, variation selectors, tags), and lone surrogates. Line feeds and tabs only where there is one
// line. Of combining marks, which may stack up over other lines, those after the fourth.
const HIDDEN =
  // deno-lint-ignore no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\ufff9-\ufffb]|\p{DI}|\p{Cs}|(?<=\p{M}{4})\p{M}/u;
const HIDDEN_IN_A_LINE = new RegExp(`[\\n\\t]|${HIDDEN.source}`, "u");

/**
 * Split text at runs of invisible characters; those are named by their code points: U+202E, or U+0000 ×3.
 * @param {string} text
 * @param {{ lines?: boolean }} [options] `lines`: line feeds and tabs are shown as such.
 * @returns {Piece[]}
 */
export function pieces(text, { lines = false } = {}) {
  const found = new RegExp(`(?:${(lines ? HIDDEN : HIDDEN_IN_A_LINE).source})+`, "gu");
  /** @type {Piece[]} */
  const result = [];
  let from = 0;
  for (const match of text.matchAll(found)) {
    if (match.index > from) result.push({ text: text.slice(from, match.index), hidden: false });
    result.push({ text: codePoints(match[0]), hidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) result.push({ text: text.slice(from), hidden: false });
  return result;
}

/** @param {string} run */
function codePoints(run) {
  /** @type {{ character: string, times: number }[]} */
  const groups = [];
  for (const character of run) {
    const last = groups.at(-1);
    if (last?.character === character) last.times += 1;
    else groups.push({ character, times: 1 });
  }
  return groups.map(({ character, times }) => `${codePoint(character)}${times > 1 ? ` ×${times}` : ""}`).join(" ");
}

/** @param {string} character */
function codePoint(character) {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/**
 * Return at most `most` characters of a text, with an ellipsis if some are left out.
 * @param {string} text
 * @param {number} most
 */
export function shortened(text, most) {
  if (text.length <= most) return text;
  const end = /[\ud800-\udbff]/.test(text[most - 1]) ? most - 1 : most;
  return `${text.slice(0, end)}…`;
}
