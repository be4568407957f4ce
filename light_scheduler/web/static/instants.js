/**
 * Instants typed by people. Pure.
 * @module
 */

/** The last millisecond of the year 9999. */
export const LATEST = 253_402_300_799_999;

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Return a typed instant as epoch ms: "+2h" and "-1d" are relative to now, "2030-01-31 09:00" is in this machine's time zone, unless it has
 * an offset or Z; an integer is epoch ms. Empty text is null. Throws Error for anything else.
 * @param {string} text
 * @param {number} now UTC epoch ms
 * @returns {number | null}
 */
export function parseInstant(text, now) {
  const typed = text.trim();
  if (!typed) return null;
  if (/^\d{10,}$/.test(typed)) return Number(typed);
  const distance = /^([+-])(\d+(?:\.\d+)?)\s*([smhd])$/.exec(typed);
  if (distance) {
    const unit = UNITS[/** @type {keyof typeof UNITS} */ (distance[3])];
    return Math.round(now + Number(distance[1] + distance[2]) * unit);
  }
  const date = /^\d{4}-\d{2}-\d{2}/.test(typed) ? Date.parse(withTime(typed)) : NaN;
  if (Number.isNaN(date)) {
    throw new Error(`"${typed}" is no instant. Write 2030-01-31 09:00, 2030-01-31T09:00Z, +2h or -1d.`);
  }
  return date;
}

/**
 * A date alone would be interpreted in UTC, unlike one with a time.
 * @param {string} typed
 */
function withTime(typed) {
  return typed.length === 10 ? `${typed}T00:00` : typed.replace(" ", "T");
}

/**
 * Return the epoch ms in an address, limited to the latest valid instant; null if there is none.
 * @param {string | null} text
 */
export function instantOf(text) {
  const at = Number(text);
  return at > 0 ? Math.min(at, LATEST) : null;
}

/**
 * Return an instant, to the minute, in a form that can be typed: in this machine's time zone, or in UTC. If the local time is ambiguous
 * because clocks are put back, in UTC.
 * @param {number} at UTC epoch ms
 * @param {boolean} isUtc
 */
export function typedInstant(at, isUtc) {
  const minute = at - at % 60_000;
  const utc = `${new Date(minute).toISOString().slice(0, 16)}Z`;
  if (isUtc) return utc;
  const shifted = new Date(minute - new Date(minute).getTimezoneOffset() * 60_000);
  const local = shifted.toISOString().slice(0, 16).replace("T", " ");
  return parseInstant(local, 0) === minute ? local : utc;
}
