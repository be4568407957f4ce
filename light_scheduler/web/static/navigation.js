/**
 * Going from page to page in this document. The page of a link takes the place of the one with the link at once, so that nothing of
 * what was left can be acted on: a browser tells of a new address only some time after it is there.
 * @module
 */

const SHOW = "show";

/** What is called before the next page is shown. */
const leaving = /** @type {Set<() => void>} */ (new Set());

/**
 * Go to a page; one that is there already is shown anew.
 * @param {string} address of a view: "#/schedules?tenant=shop"
 */
export function go(address) {
  if (address !== location.hash) history.pushState(null, "", address);
  dispatchEvent(new Event(SHOW));
}

/**
 * Call a function whenever another page is to be shown: by a link, by `go`, by going back or forward, and by an address that is typed.
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
 * Call a function before the next page is shown, unless `signal` comes first.
 * @param {() => void} leave
 * @param {AbortSignal} signal
 */
export function whenLeft(leave, signal) {
  leaving.add(leave);
  signal.addEventListener("abort", () => leaving.delete(leave));
}

/**
 * Tell whether the browser is asked for something else: a new tab, a new window, a file.
 * @param {MouseEvent} event
 */
function isForBrowser({ button, ctrlKey, metaKey, shiftKey, altKey }) {
  return button !== 0 || ctrlKey || metaKey || shiftKey || altKey;
}

/**
 * Return the address of the view that a link leads to, if it is one; links in charts are SVG.
 * @param {EventTarget | null} target
 */
function addressOf(target) {
  const address = target instanceof Element ? target.closest("a")?.getAttribute("href") ?? "" : "";
  return address.startsWith("#/") ? address : null;
}
