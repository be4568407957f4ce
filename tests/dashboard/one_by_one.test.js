import assert from "node:assert/strict";
import { sendEach } from "../../light_scheduler/web/static/one_by_one.js";

const never = () => new AbortController().signal;

Deno.test("one request that fails does not stop the others", async () => {
  /** @type {number[]} */
  const told = [];
  const send = (/** @type {string} */ name) => (name === "b" ? Promise.reject(new Error("gone")) : Promise.resolve());
  const tell = (/** @type {any} */ { sent, failed }) => void told.push(sent + failed.length);
  const progress = await sendEach(["a", "b", "c"], send, tell, never());
  assert.deepEqual(progress, { sent: 2, failed: [{ name: "b", why: "gone" }] });
  assert.deepEqual(told, [1, 2, 3]);
});

Deno.test("nothing is sent after a stop", async () => {
  const stop = new AbortController();
  const tell = (/** @type {any} */ { sent }) => (sent === 2 ? stop.abort() : undefined);
  const progress = await sendEach(["a", "b", "c"], () => Promise.resolve(), tell, stop.signal);
  assert.equal(progress.sent, 2);
});

Deno.test("several are under way at a time, and each is sent once", async () => {
  /** @type {[string, number][]} */
  const sent = [];
  let atWork = 0, most = 0;
  const send = async (/** @type {string} */ name, /** @type {number} */ at) => {
    most = Math.max(most, atWork += 1);
    await Promise.resolve();
    atWork -= 1;
    sent.push([name, at]);
  };
  const progress = await sendEach(["a", "b", "c", "d", "e"], send, () => {}, never(), 2);
  assert.deepEqual([progress.sent, most], [5, 2]);
  assert.deepEqual(sent.sort(), [["a", 0], ["b", 1], ["c", 2], ["d", 3], ["e", 4]]);
});
