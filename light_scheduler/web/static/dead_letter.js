/**
 * One dead letter, with its bytes, and a button that sends it again.
 * @module
 */

import { request } from "./api.js";
import { contentView, headersView, line } from "./content.js";
import { mayWrite } from "./definition.js";
import { causeName } from "./dead_letters.js";
import { ask } from "./dialog.js";
import { h, replace } from "./elements.js";
import { address, button, empty, facts, failure, instant, loading, userText } from "./widgets.js";

/** @typedef {import("./types.d.ts").Context} Context */
/** @typedef {import("./types.d.ts").DeadLetterDetail} DeadLetterDetail */

/**
 * @param {Context} context
 * @returns {import("./types.d.ts").View}
 */
export function deadLetter(context) {
  const body = h("div", {}, loading());
  const answers = h("div", {});
  void show(body, answers, context);
  const back = h("a", { href: address("dead-letters") }, "Dead letters");
  return { title: "Dead letter", back, node: h("div", {}, answers, body) };
}

/**
 * @param {Element} body
 * @param {Element} answers
 * @param {Context} context
 */
async function show(body, answers, { query, identity, signal }) {
  const path = `/api/v1/dead-letters/${encodeURIComponent(query.get("letter") ?? "")}`;
  try {
    /** @type {DeadLetterDetail} */
    const letter = await request(`${path}?decoded=true`, { signal });
    const redrive = button("Send it again", () => void sendAgain(path, letter, answers), { class: "main" });
    replace(
      body,
      mayWrite(identity) && letter.lacks === null &&
        h("div", { class: "row actions", role: "group", "aria-label": "Actions" }, redrive),
      definition(letter),
      h("h2", {}, "Payload"),
      letter.dropped
        ? empty("It was too large for the topic of dead letters, or cannot be read. Its bytes are at its source.")
        : contentView(letter.payload, letter.decoded),
      h("h2", {}, "Headers"),
      headersView(letter.headers),
    );
  } catch (error) {
    if (!signal.aborted) replace(body, failure(error));
  }
}

/** @param {string} lacks */
function whatLacks(lacks) {
  return [userText(lacks), h("p", { class: "note" }, "So it cannot be sent again. Everything is at its source.")];
}

/** @param {DeadLetterDetail} letter */
function definition(letter) {
  const { id, tenant, source } = letter;
  return facts(
    ["What", letter.kind],
    ["Cause", causeName(letter.cause)],
    ["Reason", userText(letter.reason, 1_000)],
    ["Field", letter.field === null ? "–" : userText(letter.field)],
    ["Tenant", userText(tenant)],
    ["Schedule", id === null ? "–" : h("a", { href: address("schedule", { tenant, id }) }, userText(id))],
    ["Became a dead letter", instant(letter.at)],
    ["Due", instant(letter.due)],
    ["Target topic", letter.target_topic === null ? "–" : userText(letter.target_topic)],
    ["Key", line(letter.key)],
    ["Left out", letter.lacks === null ? "Nothing" : whatLacks(letter.lacks)],
    ["Command", userText(`${source.topic}[${source.partition}]@${source.offset}`)],
  );
}

/**
 * @param {string} path
 * @param {DeadLetterDetail} letter
 * @param {Element} answers
 */
async function sendAgain(path, letter, answers) {
  const goes = letter.kind === "firing"
    ? "The message goes to its target topic."
    : "The command goes to its commands topic.";
  const once = "A letter is not marked as sent: each click sends it once more.";
  if (!await ask("Send this letter again?", [h("p", {}, goes), h("p", {}, once)], { yes: "Send again" })) return;
  try {
    /** @type {{ topic: string, partition: number, offset: number }} */
    const { topic, partition, offset } = await request(`${path}/redrive`, { method: "POST" });
    const where = userText(`${topic}[${partition}]@${offset}`);
    replace(
      answers,
      h("div", { class: "notice good", role: "status" }, h("p", {}, h("strong", {}, "Sent again"), ": ", where)),
    );
  } catch (error) {
    replace(answers, failure(error));
  }
}
