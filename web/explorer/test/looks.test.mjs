// The steps in which a comparison is shown.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const made = await build({ entryPoints: [fileURLToPath(new URL("../src/looks.ts", import.meta.url))], bundle: true, write: false, format: "esm", logLevel: "warning" });
const { looksOf } = await import(`data:text/javascript,${encodeURIComponent(made.outputFiles[0].text)}`);

const ALL = ["a", "b", "c", "d"];
const told = (looks) => looks.map(({ only, seeds, preview }) => `${only.join("")} ${seeds}${preview ? "" : " whole"}`);

test("the variant in view comes first, with all seeds", () => {
  assert.deepEqual(told(looksOf(ALL, ["c", "a", "b", "d"], true, 10, 0.05)), ["c 10", "abcd 10", "abcd 10 whole"]);
});

test("where runs take long, few seeds and few variants come before", () => {
  assert.deepEqual(told(looksOf(ALL, ALL, true, 10, 0.5)), ["a 1", "a 3", "a 10", "abc 10", "abcd 10", "abcd 10 whole"]);
  assert.deepEqual(told(looksOf(ALL, ALL, true, 2, 30)), ["a 1", "a 2", "abc 2", "abcd 2", "abcd 2 whole"]);
});

test("what was run before is shown from the first step on", () => {
  assert.deepEqual(told(looksOf(ALL, ["d"], false, 10, 0.1)), ["abcd 10", "abcd 10 whole"]);
  assert.deepEqual(told(looksOf(ALL, ["c", "d"], false, 10, 0.2)), ["abc 10", "abcd 10", "abcd 10 whole"]);
});

test("what is soon over has one step", () => {
  assert.deepEqual(told(looksOf(ALL, [], false, 10, 5)), ["abcd 10 whole"]);
  assert.deepEqual(told(looksOf(ALL, ALL, true, 3, 0.005)), ["abcd 3 whole"]);
});
