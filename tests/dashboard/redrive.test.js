import assert from "node:assert/strict";
import { sendEach } from "../../light_scheduler/web/static/redrive.js";

Deno.test("one letter that fails does not stop the others", async () => {
  /** @type {number[]} */
  const told = [];
  const send = (
    /** @type {string} */ letter,
  ) => (letter === "b" ? Promise.reject(new Error("gone")) : Promise.resolve());
  const tell = (/** @type {any} */ { sent, failed }) => void told.push(sent + failed.length);
  const progress = await sendEach(["a", "b", "c"], send, tell, new AbortController().signal);
  assert.deepEqual(progress, { sent: 2, failed: [{ letter: "b", why: "gone" }] });
  assert.deepEqual(told, [1, 2, 3]);
});

Deno.test("no letter is sent after a stop", async () => {
  const stop = new AbortController();
  const tell = (/** @type {any} */ { sent }) => (sent === 2 ? stop.abort() : undefined);
  const progress = await sendEach(["a", "b", "c"], () => Promise.resolve(), tell, stop.signal);
  assert.equal(progress.sent, 2);
});
