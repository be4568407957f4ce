/**
 * The user's preferences for all pages, stored by the browser.
 * @module
 */

/** @typedef {import("./format.js").TimeMode} TimeMode */

export const TIME_MODES = /** @type {const} */ ({ relative: "Relative", local: "Local", utc: "UTC" });
export const THEMES = /** @type {const} */ ({ system: "System", light: "Light", dark: "Dark" });

/** @typedef {keyof typeof THEMES} Theme */

/** Preferences chosen on this page: they apply until the page is left, even if the browser cannot store them. */
const chosen = /** @type {Map<string, string>} */ (new Map());

/** @returns {TimeMode} */
export function timeMode() {
  return read("time", TIME_MODES, "relative");
}

/** @param {string} mode */
export function setTimeMode(mode) {
  write("time", mode);
}

/** @returns {Theme} */
export function theme() {
  return read("theme", THEMES, "system");
}

/** @param {string} theme */
export function setTheme(theme) {
  write("theme", theme);
  applyTheme();
}

/** Apply the chosen theme to the page. */
export function applyTheme() {
  document.documentElement.dataset.theme = theme();
}

/**
 * @template {string} K
 * @param {string} name
 * @param {Record<K, string>} choices
 * @param {K} fallback
 * @returns {K}
 */
function read(name, choices, fallback) {
  const value = chosen.get(name) ?? kept(name);
  return value !== null && Object.hasOwn(choices, value) ? /** @type {K} */ (value) : fallback;
}

/**
 * @param {string} name
 * @param {string} value
 */
function write(name, value) {
  chosen.set(name, value);
  try {
    localStorage.setItem(name, value);
  } catch {
    // The browser stores nothing for this site.
  }
}

/** @param {string} name */
function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}
