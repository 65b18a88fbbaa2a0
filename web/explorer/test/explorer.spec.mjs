// Opens the explorer in the system's Chromium. EXPLORER: the file of `make explorer`, or the address of `fleetfoot serve`.
// PROGRAM: the program, PYTHON: an interpreter with the package, whose numbers are compared. CHROMIUM: the browser. SHOTS: a folder for screenshots.
// LONG: also what takes minutes. FLEETFOOT_BLESS: takes the pictures of the documents.
import AxeBuilder from "@axe-core/playwright";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { executablePath, options as browserOptions } from "../../chromium.mjs";
import { check, LOOKS, nameOf, take, taken } from "../../pictures.mjs";

const given = process.env.EXPLORER ?? "../../explorer.html";
const served = /^http/.test(given);
const address = served ? given : `file://${resolve(given)}`;
const skip = !served && !existsSync(resolve(given)) ? `no page at ${given}` : !existsSync(executablePath) ? "needs chromium" : false;
const PATIENCE = 240_000;
let browser, folder;

// A run of this takes a few milliseconds, so that the tests are about the page.
const CAPTURE = fileURLToPath(new URL("../../../crates/lab/tests/captures/pages-at-client.pcap", import.meta.url));
const SMALL = readFileSync(new URL("../../../crates/web/tests/small.toml", import.meta.url), "utf8");

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "explorer-"));
  writeFileSync(join(folder, "small.toml"), SMALL);
  browser = await chromium.launch(browserOptions);
});
after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true });
});

async function open(options, hash = "") {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const problems = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => /^(https?|wss?):/.test(request.url()) && !(served && request.url().startsWith(address)) && problems.push(`fetched ${request.url()}`));
  await page.goto(address + hash);
  return { context, page, problems };
}

const answered = (page) => page.waitForSelector(".headline");
const ready = (page) => page.waitForSelector(".side .ready");
const small = async (page) => {
  // Files are taken once the engine has said what there is.
  await page.waitForSelector("#example option[value='home-line']", { state: "attached" });
  await page.setInputFiles("#file", join(folder, "small.toml"));
  await page.waitForFunction(() => document.querySelector(".eyebrow")?.textContent.includes("A short line"));
  await ready(page);
};
const shot = async (page, name) => { if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/${name}.png`, fullPage: true }); };

async function result(page) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Result as JSON" }).click()]);
  return readFileSync(await download.path(), "utf8");
}

// Without the times that the machine took, as text.
function timeless(text) {
  const document = JSON.parse(text);
  delete document.timing;
  return JSON.stringify(document, null, 1);
}

// The result of the page for `small.toml`, and the mechanisms that it compared.
let shownResult = null, shownOnly = "";

test("opens with an answer, and gives the numbers of the program", { skip }, async () => {
  const { context, page, problems } = await open({ acceptDownloads: true });
  const begin = Date.now();
  await answered(page);
  console.log(`first answer after ${Date.now() - begin} ms`);
  await small(page);
  const text = await result(page);
  const command = await page.locator(".paste code").last().textContent();
  assert.match(command, /^fleetfoot compare small\.toml --only [\w,-]+ --seeds 3 --budget 0$/);
  [shownResult, shownOnly] = [text, / --only ([\w,-]+)/.exec(command)[1]];
  assert.match((await page.locator(".hint").allTextContents()).join(" "), /Compared with \d+ of \d+ mechanisms that apply here; another may save more/);
  if (process.env.PROGRAM) {
    const arguments_ = command.split(" ").slice(1).concat("--json", "--quiet", "--out", join(folder, "out"), "--force");
    const own = execFileSync(resolve(process.env.PROGRAM), arguments_, { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });
    assert.equal(timeless(text), timeless(own));
  }
  assert.ok(await page.locator(".chart svg").count() >= 4);
  assert.ok(await page.locator(".sequence line").count() > 20);
  assert.deepEqual(problems, []);
  await context.close();
});

const PACKAGE = `
import sys, fleetfoot
print(fleetfoot.compare(sys.argv[1], only=sys.argv[2], seeds=3, budget=0).to_json(), end="")`;

test("Python gives the same numbers", { skip: skip || (process.env.PYTHON ? false : "the Python package is not built here: scripts/python.sh") }, async (context) => {
  assert.ok(shownResult, "the page gave a result");
  const own = execFileSync(process.env.PYTHON, ["-c", PACKAGE, "small.toml", shownOnly], { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28 });
  const [of, here] = [own, shownResult].map((text) => JSON.parse(text).commit);
  if (of !== here) return context.skip(`the Python package was built from another commit (${of}, not ${here}): scripts/python.sh`);
  assert.equal(timeless(own), timeless(shownResult));
});

for (const [name, width, colorScheme] of [["light", 1280, "light"], ["dark", 1280, "dark"], ["phone", 390, "light"], ["phone-dark", 390, "dark"]]) {
  test(`fits and is accessible: ${name}`, { skip }, async () => {
    const { context, page, problems } = await open({ viewport: { width, height: 850 }, colorScheme });
    await small(page);
    await page.waitForSelector(".sequence");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, "the page is too wide");
    await shot(page, name);
    const found = await new AxeBuilder({ page }).analyze();
    const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
    assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`), []);
    assert.deepEqual(problems, []);
    await context.close();
  });
}

test("the packets play, pause, step and follow the slider", { skip }, async () => {
  const { context, page, problems } = await open();
  await small(page);
  await page.waitForSelector(".player");
  const shown = () => page.locator(".sequence").first().evaluate((svg) => [...svg.querySelectorAll("line")].filter((line) => line.style.display !== "none").length);
  const all = await shown();
  const slider = page.getByLabel("Time of the diagram");
  await slider.focus();
  await page.keyboard.press("Home");
  const none = await shown();
  assert.ok(none < 6 && all > 20, `${none} of ${all}`);
  await page.getByRole("button", { name: "Step ›" }).click();
  await page.getByRole("button", { name: "Step ›" }).click();
  const some = await shown();
  assert.ok(some >= none);
  await page.locator(".play").click();
  await page.waitForFunction((some) => [...document.querySelector(".sequence").querySelectorAll("line")].filter((line) => line.style.display !== "none").length > some + 2, some);
  await page.locator(".play").click();
  const paused = await slider.inputValue();
  await page.waitForTimeout(200);
  assert.equal(await slider.inputValue(), paused);
  assert.deepEqual(problems, []);
  await context.close();
});

test("mistakes are told at their place, and nothing freezes", { skip }, async () => {
  const { context, page } = await open();
  await small(page);
  const rate = page.getByLabel("Rate of the line, as text");
  await rate.fill("4 bananas");
  await rate.press("Enter");
  const wrong = page.locator(".field .wrong:visible");
  await wrong.waitFor();
  assert.match(await wrong.textContent(), /a speed is wanted, found "4 bananas"/);
  assert.equal(await rate.getAttribute("aria-invalid"), "true");
  await rate.fill("0 bit/s");
  await rate.press("Enter");
  await page.waitForFunction(() => !document.querySelector(".field .wrong:not([hidden])")?.textContent.includes("bananas"));
  await rate.fill("5 Mbit/s");
  await rate.press("Enter");
  await page.waitForSelector(".side .ready");
  assert.equal(await page.locator(".field .wrong:visible").count(), 0);
  const load = page.getByLabel("Load of those who wait, as text");
  for (const value of ["-2", "0", "x", "1e999"]) {
    await load.fill(value);
    await load.press("Enter");
    await wrong.waitFor();
    assert.match(await wrong.textContent(), /a factor is wanted/, value);
    await load.fill("× 1");
    await load.press("Enter");
    await wrong.waitFor({ state: "hidden" });
  }
  await page.waitForSelector(".side .ready");
  const told = async () => { await page.locator("#message:visible").waitFor(); return page.locator("#message").textContent(); };
  writeFileSync(join(folder, "broken.toml"), SMALL.replace("kind = \"bulk\"", "kind = \"bulky\""));
  await page.setInputFiles("#file", join(folder, "broken.toml"));
  const line = SMALL.slice(0, SMALL.indexOf("kind = \"bulk\"")).split("\n").length;
  assert.match(await told(), new RegExp(`broken\\.toml, line ${line},.*bulky`, "s"));
  await page.setInputFiles("#file", { name: "noise.toml", mimeType: "", buffer: Buffer.from([0, 1, 2, 255, 254, 0]) });
  await page.waitForFunction(() => document.getElementById("message").textContent.includes("noise.toml"));
  const large = join(folder, "large.pcap");
  writeFileSync(large, Buffer.alloc(100_000_000));
  const field = page.locator("#file-wrong:visible");
  await page.setInputFiles("#file", large);
  await page.waitForFunction(() => document.getElementById("file-wrong").textContent.includes("large.pcap (100.0 MB) is a capture of more than 64 MB"));
  assert.equal(await page.locator("#file").getAttribute("aria-invalid"), "true");
  // As long as one may be, and nothing in it: it is read while the page goes on.
  await page.setInputFiles("#file", { name: "noise.pcap", mimeType: "", buffer: Buffer.alloc(40_000_000, 7) });
  await page.waitForFunction(() => document.getElementById("file-wrong").textContent === "noise.pcap: it is neither pcap nor pcapng, nor a file of connection vectors");
  const cut = readFileSync(CAPTURE).subarray(0, 20);
  await page.setInputFiles("#file", { name: "cut.cap", mimeType: "", buffer: cut });
  await page.waitForFunction(() => document.getElementById("file-wrong").textContent === "cut.cap: it is pcap, but its header is damaged or cut off");
  assert.equal(await field.count(), 1);
  await page.locator("#edit").evaluate((details) => { details.open = true; });
  for (const [from, to, told] of [
    ["kind = \"bulk\"", "kind = \"bulk\"\ncount = 900000000", /900000000 is out of range/],
    ["3 per second", "300000000 per second", /more than this program may take/],
  ]) {
    await page.locator("#text").fill(SMALL.replace(from, to));
    await page.locator("#apply").click();
    await page.waitForFunction((words) => new RegExp(words).test(document.getElementById("message").textContent), told.source);
  }
  await context.close();
});

test("a capture becomes the scenario that the program makes of it", { skip }, async () => {
  const { context, page, problems } = await open({ acceptDownloads: true });
  await small(page);
  await page.setInputFiles("#file", CAPTURE);
  await page.waitForFunction(() => document.querySelector(".eyebrow")?.textContent.includes("Traffic of pages-at-client.pcap"));
  await ready(page);
  assert.match(await page.locator("#capture-text").textContent(), /Fit: this scenario, replayed once, beside the recording/);
  assert.equal(await page.evaluate(() => location.hash), "", "a capture fits into no link");
  if (process.env.PROGRAM) {
    const program = (...words) => execFileSync(resolve(process.env.PROGRAM), words, { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });
    program("import", resolve(CAPTURE), "--quiet", "--out", "pages-at-client.toml");
    const made = (ending) => readFileSync(join(folder, `pages-at-client.${ending}`), "utf8");
    assert.equal(await page.locator("#text").inputValue(), made("toml"));
    const command = await page.locator(".paste code").last().textContent();
    const own = program(...command.split(" ").slice(1), "--json", "--quiet", "--out", join(folder, "out"), "--force");
    assert.equal(timeless(await result(page)), timeless(own));
    const saved = [];
    page.on("download", (download) => saved.push(download));
    await page.getByRole("button", { name: "Scenario file" }).click();
    for (let times = 0; saved.length < 2 && times < 100; times += 1) await page.waitForTimeout(50);
    const vectors = saved.find((download) => download.suggestedFilename() === "pages-at-client.cvec");
    assert.equal(readFileSync(await vectors.path(), "utf8"), made("cvec"));
  }
  assert.deepEqual(problems, []);
  await context.close();
});

test("every row of the table can be looked into, also a mechanism at one place alone", { skip }, async () => {
  const { context, page, problems } = await open();
  await small(page);
  // With an upload queues stand on both ways.
  await page.locator("#edit").evaluate((details) => { details.open = true; });
  await page.locator("#text").fill(`${SMALL.replace("A short line", "Both ways").replace("seeds = 3", "seeds = 10")}\n[[traffic]]\nname = "upload"\nkind = "bulk"\ndirection = "up"\n`);
  await page.locator("#apply").click();
  await page.waitForFunction(() => document.querySelector(".eyebrow")?.textContent.includes("Both ways"));
  await ready(page);
  const name = await page.locator("tr.part button.name").first().textContent();
  await page.locator("tr.part button.name").first().click();
  await page.waitForFunction((name) => [...document.querySelectorAll("section.card")].some((card) => card.querySelector(".sequence") && card.textContent.includes(name)), name);
  assert.equal(await page.getByText("cannot be shown").count(), 0);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a long scenario says how long it takes and can be stopped", { skip }, async () => {
  const { context, page } = await open();
  await answered(page);
  writeFileSync(join(folder, "long.toml"), SMALL.replace("A short line", "A long run").replace("4 Mbit/s", "1 Gbit/s").replace("duration = \"4 s\"", "duration = \"30 min\""));
  await page.setInputFiles("#file", join(folder, "long.toml"));
  const go = page.locator(".status .go");
  await go.waitFor();
  assert.match(await page.locator(".status").first().textContent(), /takes about \d+ (s|minutes|hours)/);
  await go.click();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.waitForFunction(() => document.querySelector(".status").textContent.includes("Stopped"));
  await small(page);
  await context.close();
});

test("a link gives the setting back, and two stand beside each other", { skip }, async () => {
  const { context, page, problems } = await open();
  await small(page);
  const rate = page.getByLabel("Rate of the line, as text");
  await rate.fill("6 Mbit/s");
  await rate.press("Enter");
  await page.waitForFunction(() => location.hash.length > 10);
  await ready(page);
  await page.locator("#second").click();
  await page.waitForFunction(() => document.querySelectorAll(".side .ready").length === 2);
  assert.equal(await page.locator(".side").count(), 2);
  await page.getByLabel("Rate of the line, as text").fill("8 Mbit/s");
  await page.getByLabel("Rate of the line, as text").press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".side .ready").length === 2);
  await page.waitForTimeout(400);
  await shot(page, "two");
  const hash = await page.evaluate(() => location.hash);
  const again = await open({}, hash);
  await again.page.waitForFunction(() => document.querySelectorAll(".side .ready").length === 2);
  assert.equal(await again.page.getByLabel("Rate of the line, as text").inputValue(), "6 Mbit/s");
  await again.page.getByRole("button", { name: "Setting B" }).click();
  assert.equal(await again.page.getByLabel("Rate of the line, as text").inputValue(), "8 Mbit/s");
  assert.deepEqual([...problems, ...again.problems], []);
  await context.close();
  await again.context.close();
});

test("keys alone are enough", { skip }, async () => {
  const { context, page } = await open();
  await small(page);
  const seen = new Set();
  for (let times = 0; times < 60; times += 1) {
    await page.keyboard.press("Tab");
    seen.add(await page.evaluate(() => document.activeElement.id || document.activeElement.getAttribute("aria-label") || document.activeElement.textContent.slice(0, 30)));
  }
  for (const wanted of ["example", "share", "Rate of the line, as text", "second"]) assert.ok([...seen].some((one) => one === wanted), `${wanted} is not reached: ${[...seen].join("; ")}`);
  await page.getByLabel("Rate of the line", { exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction(() => location.hash.length > 10);
  await ready(page);
  await context.close();
});

test("pictures and tables can be saved", { skip }, async () => {
  const { context, page } = await open({ acceptDownloads: true });
  await small(page);
  await page.waitForSelector(".sequence");
  const saved = async (name) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name }).first().click()]);
    return readFileSync(await download.path());
  };
  assert.match((await saved("Save distribution as SVG")).toString(), /^<svg[^>]*xmlns/);
  assert.equal((await saved("Save packets as PNG")).subarray(1, 4).toString(), "PNG");
  assert.match((await saved("Save queue as CSV")).toString(), /^variant,link,direction,time_s,mean_wait_s,longest_wait_s,dropped\nas described,/);
  assert.match((await saved("Scenario file")).toString(), /title = "A short line"/);
  await context.close();
});

test("the documents show the page as it is", { skip }, async () => {
  for (const [width, colorScheme] of taken ? LOOKS : []) {
    const { context, page } = await open({ viewport: { width, height: width > 500 ? 860 : 800 }, colorScheme });
    await ready(page);
    await page.waitForSelector(".sequence");
    await take(page, nameOf("explorer", width, colorScheme));
    await context.close();
  }
  check("explorer");
});

test("after a change the variant in view has all seeds first", { skip: skip || (process.env.LONG ? false : "only in the long tests") }, async () => {
  const { context, page, problems } = await open({ acceptDownloads: true });
  await ready(page);
  if (process.env.PROGRAM) {
    const command = await page.locator(".paste code").last().textContent();
    writeFileSync(join(folder, "home-line.toml"), await page.locator("#text").inputValue());
    const own = execFileSync(resolve(process.env.PROGRAM), command.split(" ").slice(1).concat("--json", "--quiet", "--out", join(folder, "home"), "--force"), { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] });
    assert.equal(timeless(await result(page)), timeless(own));
  }
  // What stands above the table, and when (ms after the change).
  await page.evaluate(() => {
    document.querySelector(".ready").remove();
    window.steps = [];
    new MutationObserver(() => {
      const words = document.querySelector(".side .seeds");
      if (words === window.words) return;
      window.words = words;
      window.steps.push([words.textContent, Math.round(performance.now() - window.begin), document.querySelectorAll("table.rank tbody tr").length]);
    }).observe(document.body, { childList: true, subtree: true });
    document.querySelector('input[aria-label="Rate of the downlink of the cable line, as text"]').addEventListener("change", () => { window.begin = performance.now(); window.words = document.querySelector(".side .seeds"); });
  });
  const rate = page.getByLabel("Rate of the downlink of the cable line, as text");
  await rate.fill("48 Mbit/s");
  await rate.press("Enter");
  await ready(page);
  const steps = await page.evaluate(() => window.steps);
  console.log(`after a change of the home line: ${steps.map(([words, after]) => `${words} after ${after} ms`).join("; ")}`);
  const first = steps.find(([words]) => words.startsWith("10 seeds"));
  assert.deepEqual([first[0], first[2]], ["10 seeds, 1 of 4 mechanisms so far", 1]);
  for (const [words] of steps.slice(0, steps.indexOf(first))) assert.match(words, /^(1 seed|3 seeds) of 10, 1 of 4 mechanisms so far$/);
  assert.equal(steps.at(-1)[0], "10 seeds");
  // Back to what was run before: all of it at once.
  await page.evaluate(() => { document.querySelector(".ready").remove(); window.steps = []; });
  await rate.fill("50 Mbit/s");
  await rate.press("Enter");
  await ready(page);
  assert.deepEqual((await page.evaluate(() => window.steps)).map(([words]) => words), ["10 seeds"]);
  assert.deepEqual(problems, []);
  await context.close();
});

test("memory stays bounded over 200 changes", { skip: skip || (process.env.LONG ? false : "only in the long tests") }, async () => {
  const { context, page, problems } = await open();
  await small(page);
  const client = await context.newCDPSession(page);
  const used = async () => {
    await client.send("HeapProfiler.collectGarbage");
    return (await client.send("Runtime.getHeapUsage")).usedSize + (await client.send("Memory.getDOMCounters")).nodes * 200;
  };
  const rate = page.getByLabel("Rate of the line, as text");
  let before = 0;
  for (let number = 0; number < 200; number += 1) {
    await rate.fill(`${4 + (number % 40) / 10} Mbit/s`);
    await rate.press("Enter");
    await page.waitForTimeout(400);
    if (number === 20) { await ready(page); before = await used(); }
  }
  await ready(page);
  const after = await used();
  console.log(`${(before / 1e6).toFixed(1)} MB after 20 changes, ${(after / 1e6).toFixed(1)} MB after 200`);
  assert.ok(after < before * 1.5 + 10e6);
  assert.deepEqual(problems, []);
  await context.close();
});
