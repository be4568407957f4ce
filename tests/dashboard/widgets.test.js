import assert from "node:assert/strict";
import { startUnfolding } from "../../light_scheduler/web/static/widgets.js";

Deno.test("filters that a phone has folded open when it is turned to landscape, and stay open", () => {
  const attributes = new Map();
  const page = /** @type {any} */ (globalThis);
  /** @type {(change: { matches: boolean }) => void} */
  let turned = () => assert.fail("nobody listens");
  page.matchMedia = () => ({ addEventListener: (/** @type {any} */ _, /** @type {any} */ tell) => turned = tell });
  page.document = { querySelectorAll: () => [{ setAttribute: attributes.set.bind(attributes) }] };
  try {
    startUnfolding();
    turned({ matches: true });
    assert.equal(attributes.size, 0);
    turned({ matches: false });
    assert.deepEqual([...attributes], [["open", ""]]);
  } finally {
    delete page.matchMedia;
    delete page.document;
  }
});
