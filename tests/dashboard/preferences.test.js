import assert from "node:assert/strict";
import { setTimeMode, theme, timeMode } from "../../light_scheduler/web/static/preferences.js";

Deno.test("where the browser keeps nothing, a choice holds for the page", () => {
  const blocked = {
    get: () => {
      throw new Error("The operation is insecure.");
    },
    configurable: true,
  };
  const there = Object.getOwnPropertyDescriptor(globalThis, "localStorage");
  Object.defineProperty(globalThis, "localStorage", blocked);
  try {
    assert.deepEqual([timeMode(), theme()], ["relative", "system"]);
    setTimeMode("utc");
    assert.equal(timeMode(), "utc");
  } finally {
    Object.defineProperty(globalThis, "localStorage", there ?? { value: undefined, configurable: true });
  }
});
