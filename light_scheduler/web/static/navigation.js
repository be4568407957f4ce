/**
 * Navigation between pages within this document. The next page replaces the current one at once, so that the user cannot act on the old
 * one: browsers report a new address only after a delay.
 * @module
 */

const SHOW = "show";

/** Functions to call before the next page is shown. */
const leaving = /** @type {Set<() => void>} */ (new Set());

/**
 * Go to a page. If it is already shown, show it again.
 * @param {string} address of a view: "#/schedules?tenant=shop"
 */
export function go(address) {
  if (address !== location.hash) history.pushState(null, "", address);
  dispatchEvent(new Event(SHOW));
}

/**
 * Call a function whenever another page should be shown: by a link, by `go`, by going back or forward, and by a typed address.
 * @param {() => void} show
 */
export function startNavigation(show) {
  function change() {
    leaving.forEach((leave) => leave());
    show();
  }
  addEventListener(SHOW, change);
  addEventListener("hashchange", change);
  document.addEventListener("click", (event) => {
    const address = event.defaultPrevented || isForBrowser(event) ? null : addressOf(event.target);
    if (address === null) return;
    event.preventDefault();
    go(address);
  });
}

/**
 * Call a function before the next page is shown, unless `signal` aborts first.
 * @param {() => void} leave
 * @param {AbortSignal} signal
 */
export function whenLeft(leave, signal) {
  leaving.add(leave);
  signal.addEventListener("abort", () => leaving.delete(leave));
}

/**
 * Return whether a click asks the browser for something else: a new tab, a new window, a file.
 * @param {MouseEvent} event
 */
function isForBrowser({ button, ctrlKey, metaKey, shiftKey, altKey }) {
  return button !== 0 || ctrlKey || metaKey || shiftKey || altKey;
}

/**
 * Return the address of a link's view, if it has one; links in charts are SVG.
 * @param {EventTarget | null} target
 */
function addressOf(target) {
  const address = target instanceof Element ? target.closest("a")?.getAttribute("href") ?? "" : "";
  return address.startsWith("#/") ? address : null;
}
