// Opens the documentation site in the system's Chromium: no error, nothing fetched, no overflow on a phone, axe-core without serious findings; the
// player of the scenes, the still picture in its place, and the search.
// SITE: the built site (scripts/site.sh). CHROMIUM: the browser. SHOTS: a folder for the pictures in the documents.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { executablePath, options as browserOptions } from "../chromium.mjs";

const site = resolve(process.env.SITE ?? "");
const skip = !process.env.SITE ? "SITE is not set" : !existsSync(`${site}/index.html`) ? `no site at ${site}` : !existsSync(executablePath) ? "needs chromium" : false;
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// One of each kind: cards, tables, code, generated pages, the Python reference, a page with each scene.
const ALL_PAGES = ["index", "docs/tutorial", "docs/mechanisms", "docs/mechanism/fq-codel", "docs/mechanism/rack-tlp", "docs/architecture", "docs/findings",
  "docs/migrate/netem", "python-reference"];
const ALL_SCENES = { tail: "docs/mechanism/rack-tlp", burst: "docs/mechanism/fq-codel", thin: "docs/mechanism/rdb", "super-packet": "docs/mechanism/super-packets",
  favour: "docs/mechanism/favourtail", spreading: "docs/mechanism/initial-spreading" };
// Every test opens a few of them, `make test-all` all.
const long = Boolean(process.env.FLEETFOOT_LONG);
const PAGES = long ? ALL_PAGES : ["index", "docs/tutorial", ALL_SCENES.tail];
const SCENES = long ? ALL_SCENES : { tail: ALL_SCENES.tail, "super-packet": ALL_SCENES["super-packet"] };
let browser;

before(async () => {
  if (skip) return;
  browser = await chromium.launch(browserOptions);
});
after(() => browser?.close());

async function open(name, options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => /^(https?|wss?):/.test(request.url()) && problems.push(`fetched ${request.url()}`));
  await page.goto(`file://${site}/${name}.html`);
  return { context, page, problems };
}

test("pages fit a desk and a phone, in light and dark, and axe-core finds nothing serious", { skip }, async () => {
  for (const name of PAGES) {
    for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [390, "light"], [390, "dark"]]) {
      const { context, page, problems } = await open(name, { viewport: { width, height: 900 }, colorScheme });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${name} is ${wide} px wide at ${width}`);
      // Each scheme at one width: colours do not depend on it.
      if ((width === 1280) === (colorScheme === "light")) {
        await page.evaluate(axe);
        const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"], preload: false }));
        const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
        assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`), [], `${name}, ${colorScheme}`);
      }
      assert.deepEqual(problems, [], name);
      await context.close();
    }
  }
});

test("every scene plays, stops, steps and restarts, by keyboard too", { skip }, async () => {
  for (const [name, where] of Object.entries(SCENES)) {
    const { context, page, problems } = await open(where);
    const scene = page.locator(`#scene-${name}`);
    const time = () => scene.locator("input[type=range]").evaluate((slider) => Number(slider.value));
    assert.equal(await time(), 0, "it does not begin by itself");
    await scene.getByRole("button", { name: "Step" }).click();
    const first = await time();
    assert.ok(first > 0, `${name}: a step`);
    await page.keyboard.press("Enter");
    assert.ok((await time()) > first, `${name}: a step by keyboard`);
    await scene.getByRole("button", { name: "Play" }).click();
    await page.waitForFunction((id) => Number(document.querySelector(`#scene-${id} input`).value) > 20, name);
    await scene.getByRole("button", { name: "Pause" }).click();
    const stopped = await time();
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    assert.equal(await time(), stopped, `${name}: paused`);
    await scene.getByRole("button", { name: "Restart" }).click();
    await page.waitForFunction(([id, before]) => Number(document.querySelector(`#scene-${id} input`).value) < before, [name, stopped]);
    await scene.getByRole("button", { name: "Pause" }).click();
    // At its end everything has arrived and the last captions are marked.
    const end = await scene.locator("input[type=range]").evaluate((slider) => {
      slider.value = slider.max;
      slider.dispatchEvent(new Event("input"));
      return JSON.parse(slider.closest("figure").querySelector("script").textContent);
    });
    assert.ok(end.seconds <= 30);
    for (const [index, lane] of end.lanes.entries()) {
      const marked = await scene.locator(".scene-captions ol").nth(index).locator("[aria-current]").textContent();
      assert.ok(marked.includes(lane.captions.at(-1).text), `${name}: last caption`);
    }
    const counts = await scene.locator(".scene-player .small").filter({ hasText: / of / }).allTextContents();
    for (const count of counts) assert.equal(...count.split(" of "), `${name}: ${count}`);
    assert.deepEqual(problems, []);
    await context.close();
  }
});

test("the still picture stands alone on paper, without motion and without a script", { skip }, async () => {
  const shown = async (page) => [await page.locator(".scene-player").isVisible(), await page.locator(".scene-still").isVisible(), await page.locator(".scene-captions").isVisible()];
  const calm = await open(SCENES.tail, { reducedMotion: "reduce" });
  assert.deepEqual(await shown(calm.page), [false, true, true]);
  await calm.context.close();
  const plain = await open(SCENES.tail, { javaScriptEnabled: false });
  assert.deepEqual(await shown(plain.page), [false, true, true]);
  await plain.context.close();
  const paper = await open(SCENES.tail);
  await paper.page.emulateMedia({ media: "print" });
  assert.deepEqual(await shown(paper.page), [false, true, true]);
  assert.ok(!(await paper.page.locator(".sidebar-drawer").isVisible()));
  await paper.context.close();
});

test("the search finds a mechanism", { skip }, async () => {
  const { context, page, problems } = await open("search", {});
  await page.goto(`file://${site}/search.html?q=favourtail`);
  await page.waitForSelector("#search-results li", { timeout: 60_000 });
  const found = await page.locator("#search-results li a").allTextContents();
  assert.ok(found.some((title) => title.startsWith("favourtail")), found.join(", "));
  assert.deepEqual(problems, []);
  await context.close();
});

test("pictures for the documents", { skip: skip || (process.env.SHOTS ? false : "SHOTS is not set") }, async () => {
  for (const [name, width, colorScheme] of [[SCENES.tail, 1280, "light"], [SCENES.tail, 390, "dark"]]) {
    const { context, page } = await open(name, { viewport: { width, height: width > 500 ? 800 : 780 }, colorScheme });
    const scene = page.locator(".scene");
    if (await scene.count()) {
      await scene.locator("input[type=range]").evaluate((slider) => {
        slider.value = slider.max * 0.27;
        slider.dispatchEvent(new Event("input"));
      });
      await page.evaluate(() => scrollTo({ top: document.querySelector(".scene").offsetTop - 56, behavior: "instant" }));
    }
    await page.screenshot({ path: `${process.env.SHOTS}/${name.split("/").at(-1)}-${width}-${colorScheme}.png` });
    await context.close();
  }
});
