// How long packets wait over time, of up to two runs.

import { h, s, seconds } from "./page";
import { csv, savers } from "./save";
import type { Wait } from "./types";

export interface Line { name: string; waits: Wait[]; colour: string }

const WIDTH = 860, HEIGHT = 230, LEFT = 58, RIGHT = 12, TOP = 26, BOTTOM = 34;

/** Round steps for an axis up to `most`. */
function steps(most: number, count: number): number[] {
  const raw = most / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= raw) ?? raw;
  const found = [];
  for (let at = 0; at <= most * 1.0001; at += step) found.push(Number(at.toPrecision(6)));
  return found;
}

/** The picture of one link. */
function picture(lines: Line[], index: number): SVGSVGElement {
  const own = lines.map((line) => ({ ...line, wait: line.waits[index] })).filter((line) => line.wait);
  const span = Math.max(...own.map(({ wait }) => wait.bin_s * wait.most_s.length));
  const most = Math.max(1e-4, ...own.flatMap(({ wait }) => wait.most_s.map((value) => value ?? 0))) * 1.05;
  const x = (at: number) => LEFT + (at / span) * (WIDTH - LEFT - RIGHT);
  const y = (value: number) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM);
  const svg = s("svg", { class: "ff series", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Waiting time over time at ${own[0]?.wait.label ?? own[0]?.wait.name}: ${own.map(({ name, wait }) => `${name} up to ${seconds(Math.max(...wait.most_s.map((value) => value ?? 0)))}`).join(", ")}` });
  for (const value of steps(most, 4)) {
    svg.append(s("path", { class: "n", d: `M${LEFT} ${y(value)}H${WIDTH - RIGHT}` }),
      s("text", { class: "q", x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, value === 0 ? "0" : seconds(value).replace(".00", "").replace(/\.0 /, " ")));
  }
  for (const at of steps(span, 8)) svg.append(s("text", { class: "q", x: x(at), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, String(at)));
  svg.append(s("text", { class: "q", x: WIDTH - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, "time (s)"));
  own.forEach(({ wait, colour }, number) => {
    // The band goes up to the longest wait of a bin, the line is the mean.
    const runs: number[][] = [];
    wait.most_s.forEach((value, bin) => {
      if (value == null) return;
      const last = runs.at(-1);
      if (last && last.at(-1) === bin - 1) last.push(bin);
      else runs.push([bin]);
    });
    const at = (bin: number) => x((bin + 0.5) * wait.bin_s).toFixed(1);
    const along = (bins: number[], values: (number | null)[]) => bins.map((bin) => `${at(bin)} ${y(values[bin] ?? 0).toFixed(1)}`).join("L");
    const band = runs.map((bins) => `M${along(bins, wait.most_s)}L${along([...bins].reverse(), wait.mean_s)}Z`).join("");
    const mean = runs.map((bins) => `M${along(bins, wait.mean_s)}${bins.length === 1 ? "h1" : ""}`).join("");
    svg.append(s("path", { d: band, style: `fill:${colour};opacity:.22` }), s("path", { d: mean, style: `stroke:${colour};stroke-width:1.7` }));
    const drops = wait.dropped.map((count, bin) => (count ? `M${at(bin)} ${TOP - 18 + number * 9}v7` : "")).join("");
    if (drops) svg.append(s("path", { d: drops, style: `stroke:${colour};stroke-width:1.6` }));
  });
  if (own.some(({ wait }) => wait.dropped.some((count) => count > 0))) svg.append(s("text", { class: "q", x: LEFT - 6, y: TOP - 9, "text-anchor": "end" }, "drops"));
  return svg;
}

/** The section about the queues: a link at a time. `chosen` holds which. */
export function series(lines: Line[], chosen: { link: number }, caption: () => string): HTMLElement {
  const links = lines[0]?.waits ?? [];
  const place = h("div", { class: "chart" });
  const name = (wait: Wait) => wait.label ?? `${wait.name}, ${wait.direction}`;
  const buttons = links.map((wait, index) => h("button", { type: "button", click: () => show(index) }, name(wait)));
  const show = (index: number) => {
    chosen.link = index;
    buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(number === index)));
    place.replaceChildren(picture(lines, index));
  };
  if (chosen.link < 0) {
    // It begins where packets wait longest.
    const longest = links.map((wait) => Math.max(...wait.most_s.map((value) => value ?? 0)));
    chosen.link = longest.indexOf(Math.max(...longest));
  }
  if (links.length) show(Math.min(chosen.link, links.length - 1));
  const table = () => csv(["variant", "link", "direction", "time_s", "mean_wait_s", "longest_wait_s", "dropped"], lines.flatMap((line) =>
    line.waits.flatMap((wait) => wait.mean_s.map((mean, bin) => [line.name, wait.name, wait.direction, Number((bin * wait.bin_s).toPrecision(9)), mean, wait.most_s[bin], wait.dropped[bin]]))));
  return h("section", { class: "card", "aria-label": "Queue over time" },
    h("h3", {}, "The queue over time"),
    h("p", { class: "hint" }, "How long each packet waits at the bottleneck, its own transmission included: the line is the mean, the band reaches to the longest wait; ticks above are dropped packets. One run, the first seed."),
    buttons.length > 1 ? h("div", { class: "controls", role: "group", "aria-label": "Link" }, ...buttons) : null,
    h("ul", { class: "chips plain" }, ...lines.map((line) => h("li", {}, h("span", { class: "swatch", style: `background:${line.colour}` }), line.name))),
    place,
    savers("queue", () => place.querySelector("svg"), () => `Queue over time, ${links.length ? name(links[chosen.link] ?? links[0]) : ""} · ${caption()}`, table));
}
