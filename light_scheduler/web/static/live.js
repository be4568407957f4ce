/**
 * The state of the cluster, again and again, as long as a view shows it.
 * @module
 */

import { request } from "./api.js";
import { refresh } from "./elements.js";
import { poll } from "./poll.js";
import { Rates } from "./rates.js";
import { failure } from "./widgets.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */

const EVERY_MS = 2_000;

/** The rates since the page was opened; they outlive a view. */
export const rates = new Rates();

/**
 * Draw the cluster into an element every two seconds. If the worker does not answer, the last state stays, under a notice.
 * @param {Element} element
 * @param {(cluster: Cluster) => import("./elements.js").Child[]} draw
 * @param {AbortSignal} signal
 */
export function showCluster(element, draw, signal) {
  /** @type {Cluster | null} */
  let last = null;
  return poll(
    async () => {
      try {
        last = await request("/api/v1/cluster", { signal });
        rates.add(/** @type {Cluster} */ (last));
        refresh(element, draw(/** @type {Cluster} */ (last)));
      } catch (error) {
        if (!signal.aborted) refresh(element, failure(error), last && draw(last));
      }
    },
    EVERY_MS,
    signal,
  );
}
