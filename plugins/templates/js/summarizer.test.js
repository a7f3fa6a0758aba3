import assert from "node:assert";
import test from "node:test";

import { summarizerApi } from "../summarizer.js";

test("it asks first and writes then", () => {
  const asked = [];
  const written = [];
  Object.assign(globalThis.host, {
    prior: () => "Three files were read.",
    replies: () => [],
    sections: () => ["Session intent"],
    spanText: () => "user: mend the build",
    maxOutputTokens: () => 500,
    ask: (...given) => asked.push(given),
    section: (...given) => written.push(given),
  });
  summarizerApi.step();
  assert.match(asked[0][1], /Three files were read[^]*user: mend the build$/);
  globalThis.host.replies = () => ["## Session intent\nMend the build"];
  summarizerApi.step();
  assert.deepEqual(written, [["", "## Session intent\nMend the build"]]);
});
