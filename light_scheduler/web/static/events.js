/**
 * Documents that a worker sends again and again over one stream; without a stream, the page asks for them.
 * @module
 */

import { request } from "./api.js";
import { pause, seen } from "./poll.js";

/** @typedef {import("./types.d.ts").Documents} Documents */
/** @typedef {keyof Documents} Name */
/** @typedef {(name: Name, document: any) => void} Take */

const EVERY_MS = 2_000;

/** A stream that is silent for so long is taken for dead: a worker sends every two seconds. */
const SILENT_MS = 10_000;

/** A worker that refused a stream is asked for another one after this time. */
const AGAIN_MS = 30_000;

/**
 * Take documents as they come, until `signal` ends it. A hidden page gets none, and has no stream.
 * @param {Name[]} names
 * @param {Take} take
 * @param {(error: unknown) => void} fail There is no answer at the moment.
 * @param {AbortSignal} signal
 */
export async function follow(names, take, fail, signal) {
  let streamFrom = 0;
  while (!signal.aborted) {
    await seen(signal);
    if (signal.aborted) return;
    if (Date.now() >= streamFrom && !await stream(names, take, signal)) streamFrom = Date.now() + AGAIN_MS;
    if (signal.aborted || document.hidden) continue;
    await ask(names, take, fail, signal);
    await pause(EVERY_MS, signal);
  }
}

/**
 * Take what a stream has until it ends, the page is hidden or `signal` comes. Return whether it had anything.
 * @param {Name[]} names
 * @param {Take} take
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>}
 */
function stream(names, take, signal) {
  return new Promise((resolve) => {
    const source = new EventSource(`/api/v1/events?${names.map((name) => `of=${name}`).join("&")}`);
    let has = false;
    let silence = setTimeout(end, SILENT_MS);
    for (const name of names) {
      source.addEventListener(name, (event) => {
        has = true;
        clearTimeout(silence);
        silence = setTimeout(end, SILENT_MS);
        take(name, JSON.parse(event.data));
      });
    }
    function end() {
      source.close();
      clearTimeout(silence);
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", end);
      resolve(has);
    }
    function look() {
      if (document.hidden) end();
    }
    source.onerror = end;
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", end);
  });
}

/**
 * @param {Name[]} names
 * @param {Take} take
 * @param {(error: unknown) => void} fail
 * @param {AbortSignal} signal
 */
async function ask(names, take, fail, signal) {
  try {
    const documents = await Promise.all(names.map((name) => request(`/api/v1/${name}`, { signal })));
    names.forEach((name, index) => take(name, documents[index]));
  } catch (error) {
    if (!signal.aborted) fail(error);
  }
}
