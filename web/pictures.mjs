// Pictures of pages for the documents: tests that open a page take them where FLEETFOOT_BLESS is set, and always check that the pictures
// that are there are those they would take, and that the documents show each.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = `${root}docs/images/pages/`;
const DOCUMENTS = ["README.md", "docs/README.md", "docs/explorer.md"];

/** All pictures together (bytes). */
const MOST = 600_000;

export const taken = Boolean(process.env.FLEETFOOT_BLESS);

/** Widths and schemes of the pictures of a page. */
export const LOOKS = [[1280, "light"], [1280, "dark"], [390, "light"], [390, "dark"]];

/** What a picture is called: explorer-1280-light.webp. */
export const nameOf = (subject, width, scheme) => `${subject}-${width}-${scheme}.webp`;

/** Writes what the window shows. */
export async function take(page, name) {
  const client = await page.context().newCDPSession(page);
  const { data } = await client.send("Page.captureScreenshot", { format: "webp", quality: 72 });
  writeFileSync(folder + name, Buffer.from(data, "base64"));
}

/** Fails where the pictures of `subject` are others than those of all looks, or a document lacks one or names one that is not there. */
export function check(subject) {
  const wanted = LOOKS.map(([width, scheme]) => nameOf(subject, width, scheme)).sort();
  const own = (name) => name.startsWith(`${subject}-`);
  assert.deepEqual(readdirSync(folder).filter(own).sort(), wanted, `pictures of the ${subject}: FLEETFOOT_BLESS=1 takes them`);
  const named = DOCUMENTS.flatMap((document) => [...readFileSync(root + document, "utf8").matchAll(/images\/pages\/([\w.-]+)/g)].map(([, name]) => name));
  for (const name of named.filter(own)) assert.ok(existsSync(folder + name), `${name} is shown, but is not there`);
  for (const name of wanted) assert.ok(named.includes(name), `${name} is shown in no document of ${DOCUMENTS.join(", ")}`);
  const size = readdirSync(folder).reduce((sum, name) => sum + statSync(folder + name).size, 0);
  assert.ok(size < MOST, `the pictures have ${size} bytes, ${MOST} are the limit`);
}
