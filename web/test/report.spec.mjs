// Opens a report in the system's Chromium: no error, charts drawn, dark mode, narrow screen, tables without JavaScript.
// REPORT: the report (default: the one the Rust tests write). CHROMIUM: the browser. SHOTS: a folder for screenshots.
// FLEETFOOT_BLESS: takes the pictures of the documents.
import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { executablePath, options as browserOptions } from "../chromium.mjs";
import { check, LOOKS, nameOf, take, taken } from "../pictures.mjs";

const report = resolve(process.env.REPORT ?? "../target/tmp/report/report.html");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const skip = !existsSync(report) ? `no report at ${report}` : !existsSync(executablePath) ? "needs chromium" : false;
let browser;

before(async () => {
  if (skip) return;
  browser = await chromium.launch(browserOptions);
});
after(() => browser?.close());

async function open(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, acceptDownloads: true, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => /^(https?|wss?):/.test(request.url()) && problems.push(`fetched ${request.url()}`));
  await page.goto(`file://${report}`);
  if (options?.javaScriptEnabled !== false) await page.waitForSelector("html[data-drawn=true]", { timeout: 60_000 });
  return { context, page, problems };
}

async function shot(page, name) {
  if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png`, fullPage: true });
}

test("draws every chart without a complaint and fetches nothing", { skip }, async () => {
  const { context, page, problems } = await open();
  const places = await page.locator(".chart").count();
  assert.ok(places > 0);
  for (const id of await page.locator(".chart").evaluateAll((all) => all.map((one) => one.id))) {
    assert.equal(await page.locator(`#${id} svg.ff:visible`).count(), 1, `${id} shows one picture`);
    assert.ok(await page.locator(`#${id} svg.ff:visible :is(path, circle, rect)`).count() > 3, `${id} is empty`);
  }
  if (await page.locator("#flow").count()) assert.ok(await page.locator(".pane canvas").count() >= 2);
  assert.equal(await page.evaluate(() => window.broken), undefined, "text from the scenario ran as a script");
  await shot(page, "light");
  assert.deepEqual(problems, []);
  await context.close();
});

test("switches to dark and follows the system's scheme", { skip }, async () => {
  const ground = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await open({ colorScheme: "light" });
  const before = await ground(light.page);
  await light.page.click("#theme");
  const toggled = await ground(light.page);
  assert.notEqual(before, toggled);
  const dark = await open({ colorScheme: "dark" });
  assert.equal(await ground(dark.page), toggled);
  await shot(dark.page, "dark");
  assert.deepEqual([...light.problems, ...dark.problems], []);
  await light.context.close();
  await dark.context.close();
});

test("fits a phone", { skip }, async () => {
  for (const width of [390, 360]) {
    const { context, page, problems } = await open({ viewport: { width, height: 800 }, isMobile: true, deviceScaleFactor: 2 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    await shot(page, `phone-${width}`);
    assert.ok(wide <= width, `the page is ${wide} px wide`);
    assert.deepEqual(problems, []);
    await context.close();
  }
});

test("groups and variants can be chosen and charts saved", { skip }, async () => {
  const { context, page, problems } = await open();
  const chip = page.locator("#chips button").first();
  const lines = () => page.locator("#chart-distribution svg.ff:visible path[data-line]:visible").count();
  const shown = await lines();
  assert.ok(shown >= 2 && shown <= 5, `${shown} lines at first`);
  await chip.click();
  assert.equal(await lines(), shown - 1);
  await chip.click();
  assert.equal(await lines(), shown);
  const groups = page.locator("[data-groups=change] button");
  if (await groups.count() > 1) {
    await groups.nth(1).click();
    const group = await groups.nth(1).textContent();
    assert.equal(await page.locator("#chart-change figure:visible").getAttribute("data-group"), group);
  }
  for (const [ending, begins] of [["SVG", "<svg"], ["PNG", "\x89PNG"]]) {
    const waiting = page.waitForEvent("download");
    await page.locator("#chart-distribution .save", { hasText: ending }).click();
    const download = await waiting;
    assert.equal(download.suggestedFilename(), `fleetfoot-distribution.${ending.toLowerCase()}`);
    const bytes = readFileSync(await download.path());
    assert.equal(bytes.subarray(0, 4).toString("latin1"), begins);
    if (ending === "SVG") {
      const text = bytes.toString();
      assert.ok(!text.includes("var(") && text.includes("fleetfoot "), "it needs no page around it");
      assert.equal(text.split("data-line=").length - 1, shown, "only what is shown");
      if (process.env.SHOTS) writeFileSync(`${process.env.SHOTS}/saved.svg`, text);
    }
  }
  assert.deepEqual(problems, []);
  await context.close();
});

test("the ranking can be sorted, and shows what the reader can change", { skip }, async () => {
  const { context, page, problems } = await open();
  const names = () => page.locator("#ranking > .scroll .rank tbody th").allTextContents();
  const before = await names();
  const harm = page.locator("#ranking > .scroll .rank thead th", { hasText: "Harm" });
  await harm.locator("button").click();
  assert.equal(await harm.getAttribute("aria-sort"), "ascending");
  const harms = await page.locator("#ranking > .scroll .rank tbody td[data-label=Harm]").evaluateAll((all) => all.map((cell) => parseFloat(cell.textContent)));
  const known = harms.filter((value) => !Number.isNaN(value));
  assert.deepEqual(known, [...known].sort((a, b) => a - b));
  await harm.locator("button").click();
  await harm.locator("button").click();
  assert.deepEqual(await names(), before, "the third click is the ranking again");
  const choices = page.locator("#control button");
  if (await choices.count()) {
    const rows = page.locator(".rank tbody tr");
    const all = await rows.count();
    await page.locator("#control button[value=router]").click();
    const shown = await page.locator(".rank tbody tr:visible").count();
    assert.ok(shown > 0 && shown < all);
    assert.equal(await page.locator(".rank tbody tr:visible:not([data-needs=router])").count(), 0);
    assert.match(await page.locator("#control-said").textContent(), new RegExp(`^${shown} `));
    await choices.first().click();
    assert.equal(await page.locator(".rank tbody tr:not([hidden])").count(), all);
  }
  assert.deepEqual(problems, []);
  await context.close();
});

test("axe finds nothing serious, at both widths and in both schemes", { skip }, async () => {
  for (const options of [{}, { colorScheme: "dark" }, { viewport: { width: 390, height: 844 } }]) {
    const { context, page } = await open(options);
    await page.evaluate(axe);
    const found = await page.evaluate(() => globalThis.axe.run({ resultTypes: ["violations"] }));
    const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
    assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.length} at ${one.nodes[0].html.slice(0, 120)}`), []);
    await context.close();
  }
});

test("everything can be reached and used with the keyboard alone", { skip }, async () => {
  const { context, page, problems } = await open();
  const first = page.locator("#control button").nth(1);
  if (await first.count()) {
    await first.focus();
    await page.keyboard.press("Enter");
    assert.equal(await first.getAttribute("aria-pressed"), "true");
    assert.notEqual(await first.evaluate((button) => getComputedStyle(button).outlineStyle), "none", "focus is seen");
  }
  const unreachable = await page.locator("button:visible, a:visible, summary:visible, select:visible").evaluateAll((all) => all.filter((one) => one.tabIndex < 0).length);
  assert.equal(unreachable, 0);
  assert.deepEqual(problems, []);
  await context.close();
});

test("shows the answer, how to turn it on and the first tier at once, and folds the rest", { skip }, async () => {
  const { context, page, problems } = await open();
  if (await page.locator("#ranking").count()) {
    assert.ok(await page.locator("h1").isVisible());
    assert.ok(await page.locator(".tiles div").count() >= 4, "facts");
    assert.ok(await page.locator(".hero .note:visible").count() <= 3, "at most three notes");
    assert.ok(await page.locator("#ranking > .scroll .rank tbody tr").first().isVisible());
    assert.equal(await page.locator("#rest .rank tbody tr:visible").count(), 0, "the rest is folded");
    assert.equal(await page.locator(".other:visible").count(), 0, "other settings are folded");
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    assert.ok(height < 12000, `with the rest folded the page is ${height} px high`);
    if (await page.locator("#rest").count()) {
      await page.locator("#rest > summary").click();
      assert.ok(await page.locator("#rest .rank tbody tr").first().isVisible());
    }
  }
  assert.deepEqual(problems, []);
  await context.close();
});

test("commands can be copied: one line each", { skip }, async () => {
  const { context, page, problems } = await open({ permissions: ["clipboard-read", "clipboard-write"] });
  const paste = page.locator("#recommended .paste");
  if (await paste.count()) {
    const command = await paste.first().locator("code").textContent();
    assert.ok(!command.includes("\n"), command);
    await paste.first().locator("button").click();
    await page.waitForFunction(() => /Copied|Selected/.test(document.querySelector(".copy").textContent));
    assert.equal(await page.evaluate(() => getSelection().toString().trim()), command.trim());
    assert.ok(await page.locator("#recommended .check").count(), "what to check afterwards");
  }
  assert.deepEqual(problems, []);
  await context.close();
});

test("the Pareto picture names tier and front without overlap, also without JavaScript", { skip }, async () => {
  for (const [width, shown] of [[1280, "wide"], [360, "narrow"]]) {
    for (const javaScriptEnabled of [true, false]) {
      const { context, page } = await open({ viewport: { width, height: 800 }, javaScriptEnabled });
      if (await page.locator("#pareto").count()) {
        assert.equal(await page.locator("#pareto .picture:visible").count(), 1);
        const svg = page.locator(`#pareto .picture.${shown} svg`);
        assert.ok(await svg.isVisible());
        const found = javaScriptEnabled && await svg.evaluate((svg) => {
          const edge = svg.getBoundingClientRect();
          const boxes = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
          const bad = [];
          for (const [i, [name, a]] of boxes.entries()) {
            if (a.right > edge.right + 1 || a.left < edge.left - 1 || a.bottom > edge.bottom + 1) bad.push(`${name} is cut off`);
            for (const [other, b] of boxes.slice(i + 1)) {
              if (a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3) bad.push(`${name} over ${other}`);
            }
          }
          const size = boxes.length ? boxes[0][1].height : 0;
          if (size < 9) bad.push(`letters are ${size} px high`);
          return bad;
        });
        if (javaScriptEnabled) assert.deepEqual(found, [], `at ${width} px`);
      }
      await context.close();
    }
  }
});

test("says everything in tables without JavaScript", { skip }, async () => {
  const { context, page } = await open({ javaScriptEnabled: false });
  assert.equal(await page.locator("details.data:not([open])").count(), 0);
  assert.ok(await page.locator("table:visible").count() >= 4);
  for (const chart of await page.locator(".chart").all()) assert.ok(await chart.locator("svg.ff:visible").count() > 0, "charts need no script");
  const folded = page.locator("details.fold > summary:visible").first();
  await folded.click();
  assert.ok(await page.locator("details.fold[open]").count() > 0, "what is folded opens");
  await context.close();
});

test("the documents show the report as it is", { skip }, async () => {
  for (const [width, colorScheme] of taken ? LOOKS : []) {
    const { context, page } = await open({ viewport: { width, height: width > 500 ? 900 : 800 }, colorScheme });
    await take(page, nameOf("report", width, colorScheme));
    await context.close();
  }
  check("report");
});
