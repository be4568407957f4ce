import assert from "node:assert/strict";
import { pieces, shortened } from "../../light_scheduler/web/static/text.js";

/** @param {string} text */
const named = (text) => pieces(text).filter(({ hidden }) => hidden).map(({ text }) => text);

Deno.test("characters that cannot be seen are named by their code points", () => {
  assert.deepEqual(named("a\u0000b\u202ec\u200bd\ufeff"), ["U+0000", "U+202E", "U+200B", "U+FEFF"]);
  assert.deepEqual(named("\u{e0041}\ud800"), ["U+E0041 U+D800"]);
});

Deno.test("a run of them is one piece, however long it is", () => {
  assert.deepEqual(pieces(`a${"\u0000".repeat(1_000_000)}\u0001b`), [
    { text: "a", hidden: false },
    { text: "U+0000 ×1000000 U+0001", hidden: true },
    { text: "b", hidden: false },
  ]);
});

Deno.test("fillers, joiners and variation selectors are drawn as nothing, so they are named", () => {
  for (const code of [0x034f, 0x115f, 0x1160, 0x3164, 0xffa0, 0x17b4, 0xfe0f, 0xe0100, 0x180b]) {
    assert.deepEqual(named(`a${String.fromCodePoint(code)}b`).length, 1, code.toString(16));
  }
});

Deno.test("marks that stack up on one character are named after the fourth", () => {
  assert.deepEqual(pieces(`e${"\u0301".repeat(60)}f`), [
    { text: "e\u0301\u0301\u0301\u0301", hidden: false },
    { text: "U+0301 ×56", hidden: true },
    { text: "f", hidden: false },
  ]);
  for (const text of ["ที่นี่", "שָׁלוֹם", "हिन्दी", "Z\u0351\u036b\u0323\u0489y"]) assert.deepEqual(named(text), []);
});

Deno.test("everything else stays as it is", () => {
  const text = "<script>alert(1)</script> é 日本 \u{1f600} &amp;";
  assert.deepEqual(pieces(text), [{ text, hidden: false }]);
});

Deno.test("line feeds are named where there is one line, and are lines elsewhere", () => {
  assert.deepEqual(named("a\nb"), ["U+000A"]);
  assert.deepEqual(pieces("a\n\tb", { lines: true }), [{ text: "a\n\tb", hidden: false }]);
});

Deno.test("shortened text never ends within a character", () => {
  assert.equal(shortened("abc", 3), "abc");
  assert.equal(shortened("abcd", 3), "abc…");
  assert.equal(shortened("ab\u{1f600}d", 3), "ab…");
});
