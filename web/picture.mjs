// The picture of a report in README: node picture.mjs REPORT TARGET.png
import { chromium } from "playwright-core";

const [report, target] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await (await browser.newContext({ viewport: { width: 1120, height: 1000 }, colorScheme: "light" })).newPage();
await page.goto(`file://${report}`);
await page.waitForSelector("html[data-drawn=true]");
// The answer, how to turn it on, and the first lines of the ranking.
await page.addStyleTag({ content: ".rank tbody tr:nth-child(n+5), #ranking > details, #ranking > .hint, #pareto, #near, #described, #turn-on > details, .top, .note { display: none } .hero { padding-top: 1rem }" });
const benefit = await page.locator("#benefit").boundingBox();
await page.screenshot({ path: target, fullPage: true, clip: { x: 0, y: 0, width: 1120, height: benefit.y - 24 } });
await browser.close();
