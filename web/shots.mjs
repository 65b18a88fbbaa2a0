// Screenshots of parts of a report, to look at: node shots.mjs REPORT FOLDER
import { chromium } from "playwright-core";
const [report, folder] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
for (const [name, width, colorScheme] of [["light", 1280, "light"], ["dark", 1280, "dark"], ["phone", 390, "light"]]) {
  const page = await (await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 1000 }, colorScheme })).newPage();
  await page.goto(`file://${report}`);
  await page.waitForSelector("html[data-drawn=true]");
  for (const id of ["top", "turn-on", "described", "ranking", "pareto", "near", "benefit", "size", "times", "bottleneck", "flows", "about"]) {
    await page.evaluate((id) => { const e = document.getElementById(id) ?? document.getElementById(`chart-${id}`); e ? e.scrollIntoView() : scrollTo(0, 0); scrollBy(0, -70); }, id);
    await page.screenshot({ path: `${folder}/${name}-${id}.png` });
  }
  if (width < 500) console.log(await page.evaluate((w) => [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > w + 1 && !e.closest(".scroll")).slice(0, 8).map((e) => `${e.tagName}.${e.className?.baseVal ?? e.className} ${e.getBoundingClientRect().right}`), width));
}
await browser.close();
