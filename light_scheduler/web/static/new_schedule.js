/**
 * A form that schedules a message.
 * @module
 */

import { answer, mistake } from "./actions.js";
import { request, schedulesPath } from "./api.js";
import { labelsOf } from "./definition.js";
import { h, replace } from "./elements.js";
import { tenantField } from "./tenants.js";
import { triggerFields } from "./trigger_fields.js";
import { address, choice, failure, field } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").Result} Result */

const CONFLICTS = { fail: "Refuse", replace: "Replace it", keep: "Keep the old one" };

/**
 * @param {Context} context
 * @returns {import("./types.d.ts").View}
 */
export function newSchedule({ identity, query, signal }) {
  const answers = h("div", {});
  const fields = triggerFields(signal);
  const submit = h("button", { class: "main" }, "Schedule");
  const form = h(
    "form",
    { class: "form", onsubmit: send },
    tenantField(identity, query.get("tenant") || (identity.tenants?.[0] ?? "default")),
    field("Id (empty: generated)", { name: "id" }),
    choice("If this id exists", CONFLICTS, "fail", { name: "on_conflict" }),
    field("Target topic", { name: "topic", required: true }),
    field("Message key (optional)", { name: "key" }),
    field("Labels", { name: "labels", placeholder: "team=billing, kind=reminder" }),
    h("label", { class: "wide" }, "Payload (text)", h("textarea", { name: "payload", spellcheck: "false" })),
    h("div", { class: "wide" }, fields.node),
    h("div", { class: "wide row" }, submit),
  );

  /** @param {FormData} data */
  function command(data) {
    const value = (/** @type {string} */ name) => String(data.get(name) ?? "");
    const key = value("key");
    return {
      ...(value("id") ? { id: value("id") } : {}),
      trigger: fields.read(),
      target: { topic: value("topic").trim(), ...(key ? { key } : {}) },
      payload: { text: value("payload") },
      labels: labelsOf(value("labels")),
      on_conflict: value("on_conflict"),
    };
  }

  /** @param {SubmitEvent} event */
  async function send(event) {
    event.preventDefault();
    const data = new FormData(form);
    const wrong = mistake(() => command(data));
    if (wrong) return replace(answers, failure(new Error(wrong)));
    submit.disabled = true;
    try {
      /** @type {Result} */
      const result = await request(schedulesPath(String(data.get("tenant"))), { method: "POST", body: command(data) });
      const link = h("a", { href: address("schedule", { tenant: result.tenant, id: result.id }) }, "Show it");
      replace(answers, answer(result, h("p", {}, link)));
    } catch (error) {
      replace(answers, failure(error));
    } finally {
      submit.disabled = false;
      answers.scrollIntoView({ block: "nearest" });
    }
  }

  return { title: "New schedule", node: h("div", {}, answers, form) };
}
