/**
 * Documents that a worker sends repeatedly over one stream; without a stream, the page polls them.
 * @module
 */

import { request } from "./api.js";
import { pause, seen } from "./poll.js";

/** @typedef {import("./types.d.ts").Documents} Documents */
/** @typedef {keyof Documents} Name */
/** @typedef {(name: Name, document: any) => void} Take */

const EVERY_MS = 2_000;

/** A stream that is silent for this long is considered dead: a worker sends every two seconds. */
const SILENT_MS = 10_000;

/** How long to wait before requesting another stream from a worker that refused one. */
const AGAIN_MS = 30_000;

/**
 * Receive documents until `signal` ends it. A hidden page receives none, and has no stream.
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
 * Receive from a stream until it ends, the page is hidden, or `signal` aborts. Return whether anything was received.
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
