/**
 * Fields for a time rule, with a preview of its firings.
 * @module
 */

import { request } from "./api.js";
import { triggerOf } from "./definition.js";
import { h, replace } from "./elements.js";
import { choice, exactInstant, field } from "./widgets.js";

const KINDS = { once: "Once", every: "Every interval", cron: "Cron" };
const DIALECTS = { unix: "unix", quartz: "quartz", spring: "spring", cron4j: "cron4j" };
const PREVIEWED = 5;
const PAUSE_MS = 300;

/**
 * Return the fields and a function that reads them, which throws Error if they are incomplete.
 * @param {AbortSignal} signal
 */
export function triggerFields(signal) {
  const preview = h("div", { class: "preview", "aria-live": "polite" });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const once = field("When", { name: "at", value: "+15m", placeholder: "+15m or 2030-01-31 09:00" });
  const every = field("Interval", { name: "every", placeholder: "15m" });
  const cron = h(
    "div",
    { class: "row" },
    field("Cron expression", { name: "cron", placeholder: "0 9 * * 1-5" }),
    choice("Dialect", DIALECTS, "unix", { name: "dialect" }),
    field("Time zone", { name: "timezone", value: zone }),
  );
  const kinds = choice("Fires", KINDS, "once", { name: "kind" });
  const node = h("div", { class: "row top", oninput: changed }, kinds, once, every, cron);
  let asking = new AbortController();

  function read() {
    const value = (/** @type {string} */ name) =>
      /** @type {HTMLInputElement} */ (node.querySelector(`[name="${name}"]`)).value;
    const kind = /** @type {import("./definition.js").Kind} */ (value("kind"));
    const [at, every, cron, dialect, timezone] = ["at", "every", "cron", "dialect", "timezone"].map(value);
    return triggerOf({ kind, at, every, cron, dialect, timezone }, Date.now());
  }

  function changed() {
    const kind = /** @type {HTMLSelectElement} */ (node.querySelector("select")).value;
    once.hidden = kind !== "once";
    every.hidden = kind !== "every";
    cron.hidden = kind !== "cron";
    asking.abort();
    asking = new AbortController();
    const { signal: current } = asking;
    setTimeout(() => current.aborted || signal.aborted || void show(current), PAUSE_MS);
  }

  /** @param {AbortSignal} current */
  async function show(current) {
    try {
      const body = { trigger: read() };
      const options = { method: "POST", body, signal: current, isRead: true };
      /** @type {{ next: number[] }} */
      const { next } = await request(`/api/v1/preview?count=${PREVIEWED}`, options);
      const times = next.map((at) => h("li", {}, exactInstant(at)));
      replace(
        preview,
        times.length ? ["Next firings:", h("ol", { class: "firings" }, ...times)] : "It would never fire.",
      );
    } catch (error) {
      if (!current.aborted) replace(preview, error instanceof Error ? error.message : String(error));
    }
  }

  changed();
  return { node: h("div", {}, node, preview), read };
}
