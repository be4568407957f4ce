/**
 * The state of the cluster, updated while a view shows it.
 * @module
 */

import { h, refresh } from "./elements.js";
import { follow } from "./events.js";
import { Rates } from "./rates.js";
import { exactInstant, failure } from "./widgets.js";

/** @typedef {import("./types.d.ts").Cluster} Cluster */
/** @typedef {import("./types.d.ts").Documents} Documents */
/** @typedef {import("./types.d.ts").Overview} Overview */
/** @typedef {import("./elements.js").Child} Child */

/** Rates since the page was opened; they are kept between views. */
export const rates = new Rates();

/**
 * Draw the cluster into an element every two seconds. If the worker does not answer, the last state stays, with a notice about its age.
 * @param {Element} element
 * @param {(cluster: Cluster) => Child[]} draw
 * @param {AbortSignal} signal
 */
export function showCluster(element, draw, signal) {
  return show(element, ["cluster"], ({ cluster }) => draw(cluster), signal);
}

/**
 * Draw the cluster with its counts and its last hour; see `showCluster`.
 * @param {Element} element
 * @param {(cluster: Cluster, overview: Overview) => Child[]} draw
 * @param {AbortSignal} signal
 */
export function showOverview(element, draw, signal) {
  return show(element, ["cluster", "overview"], ({ cluster, overview }) => draw(cluster, overview), signal);
}

/**
 * @param {Element} element
 * @param {(keyof Documents)[]} names
 * @param {(documents: Documents) => Child[]} draw
 * @param {AbortSignal} signal
 */
function show(element, names, draw, signal) {
  const last = /** @type {Documents} */ ({});
  const isComplete = () => names.every((name) => name in last);
  return follow(
    names,
    (name, document) => {
      last[name] = document;
      if (name === "cluster") rates.add(document);
      if (isComplete()) refresh(element, draw(last));
    },
    (error) => refresh(element, failure(error), isComplete() && [age(last.cluster), draw(last)]),
    signal,
  );
}

/** @param {Cluster} cluster */
function age({ time }) {
  return h("p", { class: "note status" }, "Last figures: ", exactInstant(time));
}
