/**
 * JSON with line feeds and an indentation, token by token: repeated keys, the order, and how numbers are written stay as they are. Pure.
 * @module
 */

const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const INDENT = "  ";

/** Text that would grow beyond this many times its length, because it is nested so deeply, stays as it is. */
const MOST_GROWTH = 8;
const LEAST_ROOM = 10_000;

/**
 * Return JSON laid out, or null if text is not JSON.
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
