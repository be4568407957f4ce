/**
 * Confirmation dialogs.
 * @module
 */

import { h } from "./elements.js";
import { whenLeft } from "./navigation.js";
import { button } from "./widgets.js";

/**
 * Ask a question. Return whether the answer is yes; Escape and leaving the page mean no.
 * @param {string} title
 * @param {import("./elements.js").Child} body
 * @param {{ yes: string, isDangerous?: boolean, check?: () => string | null }} options `check` returns what is wrong with
 *   what was typed, or null.
 * @returns {Promise<boolean>}
 */
export function ask(title, body, { yes, isDangerous = false, check = () => null }) {
  return new Promise((resolve) => {
    const wrong = h("p", { class: "wrong", role: "alert" });
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" });
    const closed = new AbortController();
    const close = (/** @type {boolean} */ answer) => {
      closed.abort();
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    const form = h(
      "form",
      {
        onsubmit: (/** @type {SubmitEvent} */ event) => {
          event.preventDefault();
          wrong.textContent = check();
          if (!wrong.textContent) close(true);
        },
      },
      h("h2", { id: "dialog-title" }, title),
      h("div", {}, body),
      wrong,
      h(
        "div",
        { class: "row end" },
        button("Back", () => close(false), { autofocus: isDangerous }),
        h("button", { class: isDangerous ? "danger" : "main" }, yes),
      ),
    );
    dialog.append(form);
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      close(false);
    });
    whenLeft(() => close(false), closed.signal);
    document.body.append(dialog);
    dialog.showModal();
  });
}
