// What a comparison found, as the report shows it: answer, how to turn it on, table, charts.

import { h, byId, fresh, type Child } from "./page";
import { csv, savers } from "./save";
import type { Chart, Page, Row, Step } from "./types";

/** The program's drawing. It is made by the program of numbers and escaped names, and put in through a parser without scripts. */
export function drawing(text: string): SVGSVGElement | null {
  const parsed = new DOMParser().parseFromString(text, "text/html").querySelector("svg");
  return parsed && document.adoptNode(parsed);
}

function picture(wide: string, narrow: string): HTMLElement[] {
  return [h("div", { class: "picture wide" }, drawing(wide)), h("div", { class: "picture narrow" }, drawing(narrow))];
}

function shown(place: HTMLElement): SVGSVGElement | null {
  return [...place.querySelectorAll<SVGSVGElement>("svg.ff, .picture > svg")].find((svg) => svg.getClientRects().length > 0) ?? null;
}

/** The answer as a sentence, and its facts. */
export function answer(page: Page, heading: "h1" | "h2"): HTMLElement {
  const facts = page.top.facts.map((fact) => h("div", {},
    h("dt", {}, fact.what),
    h("dd", fact.number ? {} : { class: "words" }, fact.value, ...fact.beside.map((words) => h("small", {}, words)))));
  return h("div", { class: "answer" },
    h(heading, { class: "headline" }, page.top.headline),
    page.top.rest ? h("p", { class: "rest" }, page.top.rest) : null,
    facts.length ? h("dl", { class: "tiles" }, ...facts) : null,
    notes([...page.top.notes, ...page.top.more_notes]));
}

function notes(all: string[]): HTMLElement | null {
  if (!all.length) return null;
  return h("details", { class: "notes" }, h("summary", {}, `${all.length} ${all.length === 1 ? "note" : "notes"} on how far this holds`),
    ...all.map((note) => h("p", { class: "note" }, note)));
}

function instructions(steps: Step[]): HTMLElement[] {
  return steps.map((step) => h("div", { class: "step" },
    h("h3", {}, step.heading),
    ...step.commands.map(paste),
    h("p", {}, step.why), h("p", {}, step.needs),
    step.afterwards ? h("p", { class: "check" }, step.afterwards) : null));
}

/** A line that can be copied. */
export function paste(command: string): HTMLElement {
  const code = h("code", {}, command);
  const button: HTMLButtonElement = h("button", { type: "button", class: "copy", click: async () => {
    getSelection()?.selectAllChildren(code);
    const copied = await navigator.clipboard?.writeText(command).then(() => true, () => false);
    button.textContent = copied ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  } }, "Copy");
  return h("div", { class: "paste" }, h("pre", { tabindex: 0 }, code), button);
}

/** How to turn on what is recommended. */
export function turnOn(page: Page): HTMLElement | null {
  const first = page.turn_on.first;
  if (!first || !first.instructions.length) return null;
  return h("details", { class: "card fold" }, h("summary", {}, `How to turn on ${first.name}`), ...instructions(first.instructions));
}

/** The ranked table; `open` is called with the name of a row. */
export function ranking(page: Page, chosen: string, open: (name: string) => void): HTMLElement {
  const { first, rest, headings, legend, not_tried: notTried } = page.ranking;
  if (!first.length && !rest.length) return h("p", { class: "hint" }, "Nothing to compare with: choose a mechanism.");
  const table = (rows: Row[]) => h("div", { class: "scroll", tabindex: 0 }, h("table", { class: "rank" },
    h("thead", {}, h("tr", {}, ...[...headings.map(capital), "Where"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows.map(row))));
  const row = (one: Row) => {
    const bar = document.createElement("span");
    bar.className = `meter ${one.sign}`;
    bar.setAttribute("aria-hidden", "true");
    bar.append(h("span", { style: `width:${one.bar}%` }));
    return h("tr", { class: `${one.class}${one.part ? " part" : ""}${one.name === chosen ? " chosen" : ""}` },
      h("td", { "data-label": "Tier" }, one.tier || "–"),
      h("th", { scope: "row" }, h("button", { type: "button", class: "name", title: "Show its queues and packets below", "aria-pressed": String(one.name === chosen), click: () => open(one.name) }, one.name),
        one.mark ? h("abbr", { title: "no other saves as much for less harm" }, ` ${one.mark}`) : null,
        ...one.remarks.map((remark) => h("small", {}, remark))),
      h("td", { "data-label": "Time saved" }, h("span", { class: "num" }, one.saved), bar, ...one.by_group.map((words) => h("small", {}, words))),
      h("td", { "data-label": "Harm" }, one.harm),
      h("td", { "data-label": "Goodput" }, one.goodput),
      h("td", { "data-label": "Tail worst" }, one.worst_tail),
      h("td", { "data-label": "Significant" }, h("span", { class: "badge" }, one.significant)),
      h("td", { "data-label": "Where", class: "words" }, one.places || "–"));
  };
  return h("div", {},
    first.length ? table(first) : null,
    rest.length ? h("details", { class: "fold" }, h("summary", {}, `${rest.length} more, not in the first tier and not on the Pareto front`), table(rest)) : null,
    h("details", { class: "fold" }, h("summary", {}, "How to read this table"), h("p", { class: "hint" }, legend),
      notTried.length ? h("ul", { class: "lines" }, ...notTried.map((line) => h("li", {}, `Not tried: ${line}`))) : null));
}

const capital = (word: string) => word[0].toUpperCase() + word.slice(1);

/** The rows of the table as CSV. */
export function rankingCsv(page: Page): string {
  const rows = [...page.ranking.first, ...page.ranking.rest];
  return csv([...page.ranking.headings, "where"], rows.map((row) => [row.tier, row.name, row.saved, row.harm, row.goodput, row.worst_tail, row.significant, row.places]));
}

/** Groups that were chosen, by chart: they stay chosen when the numbers change. */
export type Choices = Map<string, string>;

/** A chart with its groups, its key and its table. */
export function chart(one: Chart, choices: Choices, caption: () => string): HTMLElement {
  const groups = one.pictures.map((picture) => picture.group);
  const figures = one.pictures.map((picture) => h("figure", { "data-group": picture.group }, ...picture_(picture)));
  const body = h("div", { class: "chart" }, ...figures);
  const choose = (group: string) => {
    choices.set(one.id, group);
    for (const figure of figures) figure.hidden = figure.dataset.group !== group;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.value === group));
  };
  const buttons = groups.length > 1 ? groups.map((group) => h("button", { type: "button", value: group, click: () => choose(group) }, group)) : [];
  const before = choices.get(one.id);
  choose(before !== undefined && groups.includes(before) ? before : groups[0]);
  const id = fresh("chart");
  return h("section", { class: "card", "aria-labelledby": id },
    h("h3", { id }, one.title),
    h("p", { class: "hint" }, one.text),
    buttons.length ? h("div", { class: "controls", role: "group", "aria-label": "Show" }, ...buttons) : null,
    one.key?.length ? key(one.key, body) : null,
    body,
    savers(one.id, () => shown(body), () => `${one.title}${groups.length > 1 ? `, ${choices.get(one.id)}` : ""} · ${caption()}`, () => csv(one.header, one.rows)));
}

function picture_(one: { wide: string; narrow: string }): Child[] {
  return picture(one.wide, one.narrow);
}

function key(lines: NonNullable<Chart["key"]>, body: HTMLElement): HTMLElement {
  return h("ul", { class: "chips", "aria-label": "Variants" }, ...lines.map(([index, name, colour, dash, on]) => {
    const own = () => body.querySelectorAll(`[data-line="${index}"]`);
    const line = drawing(`<svg xmlns="http://www.w3.org/2000/svg" width="22" height="6" aria-hidden="true"><path d="M0 3H22" stroke="${colour}" stroke-width="3" stroke-dasharray="${dash}"/></svg>`);
    const show = (visible: boolean) => {
      button.setAttribute("aria-pressed", String(visible));
      for (const element of own()) element.classList.toggle("off", !visible);
    };
    const button: HTMLButtonElement = h("button", { type: "button", click: () => show(button.getAttribute("aria-pressed") !== "true") }, line, name);
    show(on);
    return h("li", {}, button);
  }));
}

/** What the program says of the network as it stands. */
export function described(page: Page): HTMLElement {
  return h("ul", { class: "lines" }, ...page.described.map((line) => h("li", {}, line)));
}

/** Says something to those who cannot see the page change. */
export function say(words: string) {
  byId("said").textContent = words;
}
