/**
 * What a user has chosen for all pages, kept by the browser.
 * @module
 */

/** @typedef {import("./format.js").TimeMode} TimeMode */

export const TIME_MODES = /** @type {const} */ ({ relative: "Relative", local: "Local", utc: "UTC" });
export const THEMES = /** @type {const} */ ({ system: "System", light: "Light", dark: "Dark" });

/** @typedef {keyof typeof THEMES} Theme */

/** @returns {TimeMode} */
export function timeMode() {
  return read("time", TIME_MODES, "relative");
}

/** @param {string} mode */
export function setTimeMode(mode) {
  localStorage.setItem("time", mode);
}

/** @returns {Theme} */
export function theme() {
  return read("theme", THEMES, "system");
}

/** @param {string} theme */
export function setTheme(theme) {
  localStorage.setItem("theme", theme);
  applyTheme();
}

/** Have the page use the theme that was chosen. */
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
  const value = localStorage.getItem(name);
  return value !== null && Object.hasOwn(choices, value) ? /** @type {K} */ (value) : fallback;
}
