import assert from "node:assert/strict";
import { ApiError } from "../../light_scheduler/web/static/api.js";

Deno.test("a reason stands without the advice that a link gives", () => {
  const cases = /** @type {[string, string][]} */ ([
    ["This worker has too many searches. Try again later.", "This worker has too many searches."],
    ["The worker a has too many requests to answer; try again.", "The worker a has too many requests to answer."],
    ["Try again later, or send it without a key.", "Try again later, or send it without a key."],
    ["Too many attempts. Try again in a minute.", "Too many attempts. Try again in a minute."],
    ["This worker does not answer.", "This worker does not answer."],
  ]);
  for (const [message, reason] of cases) assert.equal(new ApiError(message, null, true).reason, reason);
});
