// Prints name, version, licence and copyright line of every package in the bundle, and writes their licences to a file.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const [metafile, target] = process.argv.slice(2);
const inputs = Object.keys(JSON.parse(readFileSync(metafile, "utf8")).inputs);
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const texts = [];
for (const [path, entry] of Object.entries(lock.packages)) {
  if (!path || !existsSync(path) || !inputs.some((input) => input.startsWith(`${path}/`))) continue;
  const name = path.replace(/^.*node_modules\//, "");
  const file = readdirSync(path).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  const text = file ? readFileSync(`${path}/${file}`, "utf8").trim() : `${entry.license}; the package has no licence file.`;
  const line = text.split("\n").find((row) => /copyright .*\d{4}/i.test(row))?.trim() ?? "";
  console.log(`${name} ${entry.version} (${entry.license}) ${line.replaceAll("*/", "* /")}`.trim());
  texts.push(`${name} ${entry.version}\n\n${text}\n`);
}
writeFileSync(target, `Licences of what is bundled in report.bundle.js and report.bundle.css.\n\n${texts.join(`\n${"-".repeat(80)}\n\n`)}`);
