// Writes explorer.html: node build.mjs TARGET [ENGINE.wasm]. Without an engine it is the page of `fleetfoot serve`.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const [target, engine] = process.argv.slice(2);
const options = { bundle: true, minify: true, write: false, target: "es2022", charset: "utf8", legalComments: "none", logLevel: "warning" };
const made = await build({ ...options, entryPoints: ["src/main.ts"], format: "iife", outdir: "out" });
const text = (ending) => made.outputFiles.find((file) => file.path.endsWith(ending)).text.trim();
// The end of the element that holds it never stands in a script.
const script = text(".js").replaceAll("</script", "<\\/script");
const parts = {
  HASH: createHash("sha256").update(script).digest("base64"),
  CONNECT: engine ? "'none'" : "'self'",
  STYLE: text(".css"),
  ENGINE: engine ? gzipSync(readFileSync(engine), { level: 9 }).toString("base64") : "",
  GIVEN: "null",
  SCRIPT: script,
};
const page = readFileSync("page.html", "utf8").replace(/@([A-Z]+)@/g, (whole, name) => (engine || name !== "GIVEN" ? parts[name] ?? whole : whole));
writeFileSync(target, page);
console.log(`${target}: ${(page.length / 1e6).toFixed(2)} MB`);
