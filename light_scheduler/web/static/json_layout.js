/**
 * JSON with line feeds and indentation, token by token: repeated keys, order, and notation of numbers are preserved. Pure.
 * @module
 */

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const INDENT = "  ";

/** Text is left unchanged if deep nesting would make it longer by more than this factor. */
const MOST_GROWTH = 8;
const LEAST_ROOM = 10_000;

/**
 * Return formatted JSON, or null if the text is not JSON.
 * @param {string} text
 */
export function laidOut(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const tokens = text.match(TOKENS) ?? [];
  const room = Math.max(LEAST_ROOM, MOST_GROWTH * text.length);
  const parts = [];
  let depth = 0;
  let length = 0;
  for (const [at, token] of tokens.entries()) {
    const before = tokens[at - 1];
    const isEnd = token === "}" || token === "]";
    if (isEnd) depth -= 1;
    const isEmpty = isEnd && (before === "{" || before === "[");
    const begins = before === "{" || before === "[" || before === "," || isEnd;
    const space = at === 0 || isEmpty ? "" : begins ? `\n${INDENT.repeat(depth)}` : before === ":" ? " " : "";
    if (token === "{" || token === "[") depth += 1;
    length += space.length + token.length;
    if (length > room) return text;
    parts.push(space, token);
  }
  return parts.join("");
}
