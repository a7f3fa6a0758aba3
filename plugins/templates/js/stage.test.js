import assert from "node:assert";
import test from "node:test";

import { stageApi } from "../stage.js";

test("a long result is cleared and the tail is left alone", () => {
  const cleared = [];
  Object.assign(globalThis.host, {
    config: () => "{}",
    kinds: () => [1, 4, 5, 4, 5, 4, 5],
    marks: () => [0, 0, 0, 0, 0, 4, 4],
    sizes: () => [7, 2, 20000, 2, 5, 2, 20000],
    viewTokens: () => 12000n,
    target: () => 1000n,
    clear: (entries) => cleared.push(...entries),
  });
  stageApi.plan();
  assert.deepEqual(cleared, [2]);
});
