/**
 * Relative times that keep updating while they are shown, with one clock for the page.
 * @module
 */

import { relative } from "./format.js";

const EVERY_MS = 1_000;

/** Live regions, which are read out when they change; times in them are not updated. */
const READ_OUT = "[aria-live], [role=status], [role=alert]";

/**
 * Return the attributes of an element that shows an instant relative to now. `ahead` is how far the reference clock is ahead of this
 * machine's.
 * @param {number} at UTC epoch ms
 * @param {number} now UTC epoch ms, by that clock
 */
export function ticking(at, now) {
  return { "data-at": at, "data-ahead": now - Date.now() };
}

/** Update all relative times of the page each second, while it is visible. */
export function startTicker() {
  setInterval(() => document.hidden || tick(Date.now()), EVERY_MS);
}

/** @param {number} now UTC epoch ms */
function tick(now) {
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-at]"))) {
    const text = relative(Number(element.dataset.at), now + Number(element.dataset.ahead));
    if (element.textContent !== text && !element.closest(READ_OUT)) element.textContent = text;
  }
}
