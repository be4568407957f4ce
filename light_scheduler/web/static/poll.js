/**
 * Repeated requests that pause while the page is hidden.
 * @module
 */

/**
 * Call a function at once, and again some time after each call, until `signal` aborts. A hidden page waits until it is visible, then calls
 * at once.
 * @param {() => Promise<void>} call
 * @param {() => number} every ms
 * @param {AbortSignal} signal
 */
export async function poll(call, every, signal) {
  while (!signal.aborted) {
    await seen(signal);
    if (signal.aborted) return;
    await call();
    await pause(every(), signal);
  }
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function seen(signal) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    function look() {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resolve();
    }
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}
