import assert from "node:assert/strict";
import { laidOut } from "../../light_scheduler/web/static/json_layout.js";
import { avroFingerprint, bytesOf, formsOf, isLeftOut, shownPart } from "../../light_scheduler/web/static/payload.js";

Deno.test("bytes come from text or base64", () => {
  assert.deepEqual([...bytesOf({ text: "é" })], [0xc3, 0xa9]);
  assert.deepEqual([...bytesOf({ base64: "/wA=" })], [0xff, 0]);
});

Deno.test("a payload in Avro's single-object encoding tells which schema it has", () => {
  const base64 = (/** @type {number[]} */ ...bytes) => ({ base64: btoa(String.fromCharCode(...bytes)) });
  assert.equal(avroFingerprint(base64(0xc3, 1, 1, 2, 3, 4, 5, 6, 7, 0xff, 9)), "ff07060504030201");
  assert.equal(avroFingerprint(base64(0xc3, 1, 1, 2, 3, 4, 5, 6, 7)), null, "it is too short");
  assert.equal(avroFingerprint({ text: "\u00c3\u0001 and some more" }), null, "that is UTF-8");
});

Deno.test("the first form is the one that tells most", () => {
  assert.deepEqual([...formsOf({ text: '{"a": 1}' }).keys()], ["json", "text", "hex"]);
  assert.deepEqual([...formsOf({ text: "plain" }).keys()], ["text", "hex"]);
  assert.deepEqual([...formsOf({ base64: "/wA=" }).keys()], ["hex", "text"]);
});

Deno.test("what was decoded comes first", () => {
  const bytes = { base64: "/wA=" };
  const forms = formsOf(bytes, { by: "avro", json: '{"a":1}' });
  assert.deepEqual([...forms.keys()], ["decoded", "hex", "text"]);
  assert.equal(forms.get("decoded")?.part(0, 99), '{\n  "a": 1\n}');
  assert.equal(formsOf(bytes, { by: "hook", text: "<b>" }).get("decoded")?.part(0, 99), "<b>");
  assert.deepEqual([...formsOf(bytes, { by: "hook", error: "ValueError" }).keys()], ["hex", "text"]);
});

Deno.test("masked JSON takes the place of what was sent, which is text and hex at most", () => {
  const decoded = /** @type {const} */ ({ by: "json", json: '{"a":"********"}' });
  const forms = formsOf({ text: '{"a":1}', masked: true }, decoded);
  assert.deepEqual([...forms.keys()], ["json", "text", "hex"]);
  assert.equal(forms.get("json")?.part(0, 99), '{\n  "a": "********"\n}');
  assert.deepEqual([...formsOf({ text: '{"a":1}', masked: true }, null).keys()], ["text", "hex"]);
  assert.deepEqual([...formsOf({ masked: true }, decoded).keys()], ["json"]);
  assert.deepEqual([isLeftOut({ masked: true }), isLeftOut({ masked: true, text: "" })], [true, false]);
});

Deno.test("JSON is indented, and its tokens stay as they are", () => {
  assert.equal(
    laidOut('{"a":[1.0 ,1e5],"a":{},"b":[ ]}'),
    '{\n  "a": [\n    1.0,\n    1e5\n  ],\n  "a": {},\n  "b": []\n}',
  );
  assert.equal(laidOut('{"id":12345678901234567890}'), '{\n  "id": 12345678901234567890\n}');
  assert.equal(laidOut('{"q":"a\\"{b},:[\\\\"}'), '{\n  "q": "a\\"{b},:[\\\\"\n}');
  assert.equal(laidOut(" 5 "), "5");
  assert.equal(laidOut("{'a': 1}"), null);
});

Deno.test("JSON that an indentation would blow up stays as it is", () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  assert.equal(laidOut(deep), deep);
  const long = JSON.stringify(["\\x".repeat(500_000)]);
  assert.equal(laidOut(long), `[\n  ${long.slice(1, -1)}\n]`);
});

Deno.test("hex has offset, digits and what is printable", () => {
  const hex = formsOf({ text: "0123456789abcdef\n" }).get("hex");
  assert.deepEqual(hex?.part(0, hex.first).split("\n"), [
    "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef",
    `00000010  0a${" ".repeat(47)}.`,
  ]);
});

Deno.test("a large payload is shown part by part", () => {
  const forms = formsOf({ text: "x".repeat(1_000_000) });
  for (const [form, lengths] of /** @type {const} */ ([["text", [20_000, 200_000]], ["hex", [4_096, 40_960]]])) {
    const source = forms.get(form);
    assert.deepEqual([source?.first, source?.step, source?.total], [...lengths, 1_000_000]);
  }
  const text = /** @type {import("../../light_scheduler/web/static/payload.js").Source} */ (forms.get("text"));
  assert.equal(text.part(999_990, 1_199_990), "x".repeat(10));
  assert.equal(shownPart(text, 0, 20_000), "Characters 1 to 20,000 of 1,000,000.");
  assert.equal(shownPart(text, 800_000, 1_000_000), "Characters 800,001 to 1,000,000 of 1,000,000.");
  assert.equal(shownPart({ ...text, total: 5 }, 0, 20_000), null);
});

Deno.test("no part ends within a character, and none is lost between two parts", () => {
  const text = formsOf({ text: "ab\u{1f600}d" }).get("text");
  assert.deepEqual([text?.part(0, 3), text?.part(3, 5)], ["ab", "\u{1f600}d"]);
});
