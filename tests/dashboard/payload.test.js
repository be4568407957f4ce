import assert from "node:assert/strict";
import { bytesOf, formsOf, leftOut, shown } from "../../light_scheduler/web/static/payload.js";

Deno.test("bytes come from text or base64", () => {
  assert.deepEqual([...bytesOf({ text: "é" })], [0xc3, 0xa9]);
  assert.deepEqual([...bytesOf({ base64: "/wA=" })], [0xff, 0]);
});

Deno.test("the first form is the one that tells most", () => {
  assert.deepEqual(formsOf({ text: '{"a": 1}' }), ["json", "text", "hex"]);
  assert.deepEqual(formsOf({ text: "plain" }), ["text", "hex"]);
  assert.deepEqual(formsOf({ base64: "/wA=" }), ["hex", "text"]);
});

Deno.test("JSON is indented, unless a number would lose digits", () => {
  assert.equal(shown({ text: '{"a":[1]}' }, "json").text, '{\n  "a": [\n    1\n  ]\n}');
  assert.equal(shown({ text: '{"id":12345678901234567890}' }, "json").text, '{"id":12345678901234567890}');
  assert.equal(shown({ text: '{"id":"12345678901234567890"}' }, "json").text, '{\n  "id": "12345678901234567890"\n}');
});

Deno.test("hex has offset, digits and what is printable", () => {
  const { text } = shown({ text: "0123456789abcdef\n" }, "hex");
  assert.deepEqual(text.split("\n"), [
    "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef",
    `00000010  0a${" ".repeat(47)}.`,
  ]);
});

Deno.test("what is too large is cut, and the rest is counted", () => {
  const cut = shown({ text: "x".repeat(1_000_000) }, "text", 10);
  assert.deepEqual(cut, { text: "x".repeat(10), left: 999_990, unit: "character" });
  assert.equal(leftOut(cut), "999,990 more characters");
  assert.equal(shown({ text: "x".repeat(1_000) }, "hex", 152).left, 1_000 - 32);
  assert.equal(leftOut(shown({ text: "x" }, "text")), null);
});
