// Screenshots of the explorer, to look at: node shots.mjs EXPLORER.html FOLDER [width] [scheme]
import { chromium } from "playwright-core";
const [page_, folder, only] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
for (const [name, width, colorScheme] of [["light", 1280, "light"], ["dark", 1280, "dark"], ["phone", 390, "light"]]) {
  if (only && only !== name) continue;
  const page = await (await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 900 }, colorScheme })).newPage();
  page.on("console", (message) => console.log(name, message.text()));
  page.on("pageerror", (error) => console.log(name, String(error)));
  const begin = Date.now();
  await page.goto(/^http/.test(page_) ? page_ : `file://${page_}`);
  await page.waitForSelector(".headline", { timeout: 300_000 });
  console.log(name, "first answer after", Date.now() - begin, "ms");
  await page.waitForSelector(".sequence", { timeout: 300_000 });
  await page.waitForSelector(".ready", { timeout: 600_000 });
  console.log(name, "all after", Date.now() - begin, "ms");
  await page.screenshot({ path: `${folder}/${name}-top.png` });
  await page.screenshot({ path: `${folder}/${name}-all.png`, fullPage: true });
  if (width < 500) console.log(await page.evaluate((w) => [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > w + 1 && !e.closest(".scroll,.window,pre")).slice(0, 8).map((e) => `${e.tagName}.${e.className?.baseVal ?? e.className} ${e.getBoundingClientRect().right}`), width));
}
await browser.close();
