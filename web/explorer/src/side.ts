// One setting and what was found for it.

import { BASELINE, type Crew, type Missing, type Request } from "./crew";
import { about, h, type Child } from "./page";
import { Refused, Stopped, type Engine } from "./engine";
import { settings, type Moved } from "./controls";
import { looksOf, type Look } from "./looks";
import { answer, chart, described, drawing, paste, ranking, rankingCsv, say, turnOn, type Choices } from "./results";
import { saveFile, savers } from "./save";
import { sequence } from "./sequence";
import { series } from "./series";
import type { Checked, Compared, Described, Estimate, Imported, Opened, Progress, Traced, Trouble } from "./types";

const GREY = "#808790", BLUE = "#0072B2";

/** So long (ms) what ranks may finish what it does when the setting changes. */
const PATIENCE = 500;

/** So long (ms) at least between two words of how far it is. */
const BETWEEN = 250;

/** A whole comparison that takes longer (s) is begun only when the reader says so. */
const LONG = 60;

/** So long (ms) a first run may take before the engine that ranks estimates how long runs take. */
const SAMPLE = 150;

/** The first look takes longer than this (s): say so before it begins. */
const LONG_LOOK = 10;

/** How many mechanisms of those that are compared. */
const ofAll = (some: number, all: number) => `${some < all ? `${some} of ` : ""}${all} ${all === 1 ? "mechanism" : "mechanisms"}`;

export class Side {
  readonly element = h("section", { class: "side" });
  file: Opened = { name: "home-line.toml", toml: "" };
  moved: Moved = { set: new Map(), load: 1 };
  chosen = new Set<string>();
  checked: Checked | null = null;
  compared: Compared | null = null;
  private readonly status = h("div", { class: "status" });
  private readonly body = h("div", { class: "body" });
  private readonly packets = h("div", {});
  private readonly choices: Choices = new Map();
  private readonly link = { link: -1 };
  private shown = "";
  /** Whether the reader chose what is shown. */
  private picked = false;
  private connection: { group?: string; number?: number } = {};
  private looked = "";
  private turn = 0;
  private told = 0;
  /** The step that is shown, and the last one. */
  private step: Look = { only: [], seeds: 0, preview: true };
  private whole: Look = this.step;
  /** How long (s) a run took with the last setting. */
  private run_s: number | null = null;

  constructor(private readonly engine: Engine, private readonly looker: Engine, private readonly crew: Crew | null, readonly title: string, private readonly trouble: (trouble: Trouble | null) => void) {
    this.element.append(this.status, this.body);
  }

  /** Gives up what is asked. */
  private quit() {
    // Where others make the runs it is busy for moments only, and it has all that were made.
    this.engine.stop(this.crew ? PATIENCE : 0);
    this.crew?.stop();
    this.looker.stop();
  }

  /** The scenario as it is asked for. */
  described(): Described {
    return { ...this.own(), set: settings(this.moved, this.checked?.controls ?? []) };
  }

  /** What every figure says of itself. */
  private readonly caption = () => `${this.checked?.title ?? ""}${this.described().set.length ? `, ${this.described().set.join(", ")}` : ""} · ${this.compared?.page.seeds ?? "1 seed"} · Fleetfoot`;

  /** The file as the engine reads it. */
  private own() {
    const { name, toml, files } = this.file;
    return { name, toml, files };
  }

  /** Reads the file anew. */
  async check(): Promise<Checked | null> {
    const turn = ++this.turn;
    this.quit();
    try {
      // The file as it stands: the controls are about its own values.
      const checked = await this.engine.ask<Checked>({ do: "check", ...this.own(), set: [] });
      if (turn !== this.turn) return null;
      this.checked = checked;
      return checked;
    } catch (error) {
      this.fail(error, turn);
      return null;
    }
  }

  /** Makes a scenario of a capture; `null`: it was stopped. */
  async read(name: string, capture: Uint8Array<ArrayBuffer>): Promise<Imported | null> {
    const turn = ++this.turn;
    this.quit();
    this.element.setAttribute("aria-busy", "true");
    this.working(`Reading ${name}…`, turn);
    try {
      const imported = await this.engine.ask<Imported>({ do: "import", name }, (progress) => {
        if (progress.step && progress.total) this.working(`${name}: ${progress.step}${progress.unit === "runs" ? `, ${progress.done} of ${progress.total}` : ""}`, turn, (progress.done ?? 0) / progress.total);
      }, capture);
      return turn === this.turn ? imported : null;
    } catch (error) {
      if (error instanceof Stopped || turn !== this.turn) return null;
      this.element.removeAttribute("aria-busy");
      this.status.replaceChildren(h("span", { class: "wrong" }, "Nothing was read: see the message at the file."));
      throw error;
    }
  }

  private request({ only, seeds, preview }: Look): Request {
    return { scenario: this.described(), only, seeds, budget: 0, preview };
  }

  /** Compares anew, in steps: what the reader looks at first, with all seeds. */
  async run() {
    const turn = ++this.turn;
    this.quit();
    this.trouble(null);
    const seeds = Math.max(1, Math.min(10, this.checked?.seeds ?? 10));
    const chosen = [...this.chosen];
    this.whole = { only: chosen, seeds, preview: false };
    this.element.setAttribute("aria-busy", "true");
    this.working("Looking…", turn);
    try {
      if (!chosen.length) throw new Refused({ message: "choose at least one mechanism to compare with", text: "", file: "", line: 0, column: 0, key: "", help: [], memory: false });
      const pass = this.request({ ...this.whole, preview: true });
      // The variant in view first; of a place alone that whose part it is.
      const inView = (name: string) => name === this.shown || this.shown.startsWith(`${name} at `) || this.shown.startsWith(`${name} on `);
      const order = [...chosen].sort((one, other) => Number(inView(other)) - Number(inView(one)));
      const ask = (only: string[]) => this.engine.ask<Missing>({ do: "missing", ...pass, only });
      const wanted = await ask(order.slice(0, 1));
      if (turn !== this.turn) return;
      const baseline = wanted.runs.some((run) => run.variant === BASELINE);
      if (baseline) this.crew?.begin(wanted, pass);
      const lacking = baseline ? [] : (await ask(chosen)).runs.map((run) => run.variant);
      if (turn !== this.turn) return;
      const missing = order.filter((name) => baseline || lacking.includes(name));
      let looks = [this.whole];
      if (missing.length) {
        let run_s = baseline ? null : this.run_s;
        if (baseline && this.crew) {
          run_s = await this.crew.sample(SAMPLE);
          if (turn !== this.turn) return;
        }
        if (run_s === null) {
          const estimate = await this.engine.ask<Estimate>({ do: "estimate", ...pass, seeds: 1 });
          if (turn !== this.turn) return;
          if (estimate.seconds !== null && estimate.seconds > LONG_LOOK) {
            this.crew?.stop();
            await this.agreed(`One seed of ${estimate.variants} variants takes about ${about(estimate.seconds)} here.`, turn);
          }
          run_s = estimate.seconds === null ? 0 : estimate.seconds / estimate.variants;
        }
        looks = looksOf(chosen, missing, baseline, seeds, run_s);
      }
      let computed = 0, took = 0, asked = false;
      const run_s = () => this.crew?.run_s ?? (computed > 0 ? took / computed : null);
      for (const [index, look] of looks.entries()) {
        // The last step makes up to as many runs again.
        const left = (run_s() ?? 0) * (2 * seeds * (chosen.length + 1) - this.step.seeds * (this.step.only.length + 1));
        if (index > 0 && !asked && left > LONG) {
          asked = true;
          this.crew?.stop();
          await this.agreed(`All ${seeds} seeds take about ${about(left)} more.`, turn);
          if (turn !== this.turn) return;
        }
        const progress = (progress: Progress) => this.progress(progress, look, turn);
        await this.crew?.prepare(this.request(look), progress);
        if (turn !== this.turn) return;
        const begin = performance.now();
        const comparing = this.engine.ask<Compared>({ do: "compare", ...this.request(look) }, progress);
        // The next runs are made while these are shown.
        if (looks[index + 1]) this.crew?.ahead(this.request(looks[index + 1])).catch(() => undefined);
        const compared = await comparing;
        if (turn !== this.turn) return;
        computed += compared.computed;
        took += (performance.now() - begin) / 1e3;
        this.compared = compared;
        this.step = look;
        this.show();
        if (index === 0 || (!look.preview && this.looked !== this.shown)) void this.look();
      }
      this.run_s = run_s() ?? this.run_s;
      this.done();
    } catch (error) {
      this.fail(error, turn);
    }
  }

  /** Ends what is running; what is there stays. */
  stop() {
    this.turn++;
    this.quit();
    this.element.removeAttribute("aria-busy");
    this.status.replaceChildren(h("span", {}, this.compared ? `Stopped: what is shown has ${this.compared.page.seeds}${this.step.only.length < this.whole.only.length ? ` and ${ofAll(this.step.only.length, this.whole.only.length)}` : ""}.` : "Stopped."), h("button", { type: "button", click: () => void this.run() }, "Go on"));
  }

  private working(words: string, turn: number, share?: number) {
    if (turn !== this.turn) return;
    const bar = h("progress", share === undefined ? { max: 1, "aria-label": "Progress" } : { max: 1, value: share, "aria-label": "Progress" });
    const text = h("span", {}, words);
    const button = this.status.querySelector<HTMLButtonElement>("button.stop") ?? h("button", { type: "button", class: "stop", click: () => this.stop() }, "Stop");
    this.status.replaceChildren(bar, text, button);
  }

  private progress(progress: Progress, look: Look, turn: number) {
    // Each word of it paints the page again, which takes time from the runs.
    if (performance.now() - this.told < BETWEEN) return;
    this.told = performance.now();
    const words = `${look.seeds === 1 ? "1 seed" : `${look.seeds} seeds`}, ${ofAll(look.only.length, this.whole.only.length)}`;
    if (progress.done !== undefined && progress.total) this.working(`${words}: ${progress.step}, ${progress.done} of ${progress.total} runs`, turn, progress.done / progress.total);
    else if (progress.at_s !== undefined && progress.end_s) this.working(`${words}: a run is at ${progress.at_s.toFixed(1)} of ${progress.end_s} s`, turn, progress.at_s / progress.end_s);
  }

  /** Waits until the reader agrees. */
  private agreed(words: string, turn: number): Promise<void> {
    this.element.removeAttribute("aria-busy");
    say(words);
    return new Promise((resolve) => {
      this.status.replaceChildren(h("span", {}, words), h("button", { type: "button", class: "go", click: () => {
        if (turn !== this.turn) return;
        this.element.setAttribute("aria-busy", "true");
        this.working("Running…", turn);
        resolve();
      } }, "Run it"));
    });
  }

  private done() {
    this.element.removeAttribute("aria-busy");
    const compared = this.compared;
    if (!compared) return;
    say(`${this.title} ${compared.page.seeds}: ${compared.page.top.headline}`);
    this.status.replaceChildren(h("span", { class: "ready" }, `Done: ${compared.page.seeds}.`));
  }

  private fail(error: unknown, turn: number) {
    if (error instanceof Stopped || turn !== this.turn) return;
    this.crew?.stop();
    const trouble: Trouble = error instanceof Refused ? error.trouble : { message: String(error), text: String(error), file: "", line: 0, column: 0, key: "", help: [], memory: false };
    this.element.removeAttribute("aria-busy");
    this.status.replaceChildren(h("span", { class: "wrong" }, "Nothing was run: see the message at the setting."));
    this.body.classList.add("old");
    this.trouble(trouble);
  }

  private show() {
    const compared = this.compared;
    if (!compared) return;
    const { step, whole } = this;
    const last = !step.preview;
    const page = compared.page;
    this.body.classList.remove("old");
    const charts = (ids: string[]) => page.charts.filter((one) => ids.includes(one.id)).map((one) => chart(one, this.choices, this.caption));
    const names = [...page.ranking.first, ...page.ranking.rest].map((row) => row.name);
    // What the reader chose stays chosen while its runs are still to come.
    if (!this.picked || (last && !names.includes(this.shown))) this.shown = page.turn_on.first?.name && names.includes(page.turn_on.first.name) ? page.turn_on.first.name : (names[0] ?? "");
    const open = (name: string) => { this.picked = true; this.shown = name; this.connection = {}; this.show(); void this.look(); };
    const { command, json } = compared;
    const missing = whole.only.filter((name) => !step.only.includes(name));
    const behind = [step.seeds < whole.seeds ? `${page.seeds} of ${whole.seeds}` : page.seeds, missing.length ? `${ofAll(step.only.length, whole.only.length)} so far` : ""].filter(Boolean).join(", ");
    const parts: Child[] = [
      h("p", { class: "eyebrow" }, h("span", { class: "letter" }, `${this.title}: `), this.checked?.title ?? "",
        h("span", { class: "seeds", title: "The same network with other random numbers; every number below is of so many" }, behind)),
      missing.length ? h("p", { class: "hint" }, `The answer so far; it may change with what is still being run: ${missing.join(", ")}.`) : null,
      last && !missing.length ? this.leftOut() : null,
      answer(page, "h2"),
      h("section", { "aria-label": "Ranking" }, h("h3", { class: "part" }, `Ranking, ${behind}`), ranking(page, this.shown, open)),
      turnOn(page),
      ...charts(["change", "distribution"]),
      this.packets,
      h("details", { class: "card fold" }, h("summary", {}, "The network as it stands"), described(page)),
      page.pareto ? this.pareto(page.pareto) : null,
      ...charts(["size"]),
      h("div", { class: "two" }, ...charts(["delay", "utilisation"])),
      last ? h("section", { class: "card" }, h("h3", {}, "The same in the program"), h("p", { class: "hint" }, "It prints the same numbers, byte for byte. A file that it names is the one that was opened; one whose text was changed here is saved by “Scenario file” first."), paste(command)) : null,
      h("div", { class: "row downloads", role: "group", "aria-label": "Downloads" },
        h("button", { type: "button", click: () => this.saveScenario() }, "Scenario file"),
        json !== null ? h("button", { type: "button", click: () => saveFile("fleetfoot-result.json", json, "application/json") }, "Result as JSON") : null,
        h("button", { type: "button", click: () => saveFile("fleetfoot-ranking.csv", rankingCsv(page), "text/csv") }, "Ranking as CSV")),
    ];
    const focus = document.activeElement instanceof HTMLButtonElement && this.body.contains(document.activeElement) ? document.activeElement.textContent : null;
    const opened = new Set([...this.body.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
    this.body.replaceChildren(...parts.filter((part): part is Node | string => Boolean(part)));
    for (const summary of this.body.querySelectorAll("details > summary")) if (opened.has(summary.textContent)) (summary.parentElement as HTMLDetailsElement).open = true;
    if (focus) [...this.body.querySelectorAll("button")].find((button) => button.textContent === focus)?.focus({ preventScroll: true });
  }

  /** Of how many mechanisms the answer knows nothing, since the reader did not choose them. A file with variants of its own is about these. */
  private leftOut(): HTMLElement | null {
    const all = this.checked && !this.checked.own.length ? this.checked.variants : [];
    const compared = all.filter((name) => this.whole.only.includes(name)).length;
    if (compared === all.length) return null;
    return h("p", { class: "hint" }, `Compared with ${ofAll(compared, all.length)} that apply here; another may save more. “All ${all.length}”, below the list of them, compares with each.`);
  }

  private pareto(picture: { text: string; wide: string; narrow: string }): HTMLElement {
    const place = h("div", { class: "chart" }, h("div", { class: "picture wide" }, drawing(picture.wide)), h("div", { class: "picture narrow" }, drawing(picture.narrow)));
    return h("section", { class: "card" }, h("h3", {}, "What it saves, whom it harms"), h("p", { class: "hint" }, picture.text), place,
      savers("pareto", () => [...place.querySelectorAll("svg")].find((svg) => svg.getClientRects().length > 0) ?? null, this.caption));
  }

  /** The file with the changes in it. */
  async saveScenario() {
    try {
      const { toml } = await this.looker.ask<Checked>({ do: "check", ...this.described() });
      saveFile(this.file.name.replace(/[^\w.-]/g, "-"), toml, "application/toml");
      // Under the names that stand in the scenario.
      for (const beside of this.file.files ?? []) saveFile(beside.name, beside.text, "text/plain");
    } catch (error) {
      this.fail(error, this.turn);
    }
  }

  /** Looks into one run of the baseline and of the chosen variant. */
  private async look() {
    const turn = this.turn;
    this.looked = this.shown;
    try {
      const ask = (variant: string, connection: { group?: string; number?: number }) => this.looker.ask<Traced>({ do: "trace", scenario: this.described(), variant, chosen: this.compared?.chosen, ...connection });
      const before = await ask(BASELINE, this.connection);
      const same = { group: before.group, number: before.number };
      const after = this.shown && this.shown !== BASELINE ? await ask(this.shown, same) : null;
      if (turn !== this.turn) return;
      const lines = [{ name: BASELINE, waits: before.waits, colour: GREY }];
      if (after) lines.push({ name: this.shown, waits: after.waits, colour: BLUE });
      const panels = [{ name: BASELINE, diagram: before.diagram }];
      if (after) panels.push({ name: this.shown, diagram: after.diagram });
      this.packets.replaceChildren(series(lines, this.link, this.caption), before.diagram ? sequence(panels, this.chooser(before), this.caption) : "");
    } catch (error) {
      if (error instanceof Stopped || turn !== this.turn) return;
      this.packets.replaceChildren(h("p", { class: "hint" }, `The packets of this run cannot be shown: ${error instanceof Error ? error.message : String(error)}`));
    }
  }

  /** Which connection is drawn. */
  private chooser(traced: Traced): HTMLElement {
    const group: HTMLSelectElement = h("select", { "aria-label": "Traffic", change: () => { this.connection = { group: group.value }; void this.look(); } },
      ...traced.groups.map((name) => h("option", { value: name, selected: name === traced.group }, name)));
    const listed = traced.connections;
    const words = (number: number) => {
      const one = listed.find((one) => one.number === number);
      return one ? `no. ${number}, at ${one.start_s.toFixed(2)} s, ${one.segments} packets${one.lost ? `, ${one.lost} lost` : ""}` : `no. ${number}`;
    };
    const numbers = listed.map((one) => one.number);
    if (traced.number !== undefined && !numbers.includes(traced.number)) numbers.push(traced.number);
    const number: HTMLSelectElement = h("select", { "aria-label": "Connection", change: () => { this.connection = { group: traced.group, number: Number(number.value) }; void this.look(); } },
      ...numbers.map((one) => h("option", { value: one, selected: one === traced.number }, words(one))));
    return h("div", { class: "controls" }, h("label", {}, "Traffic ", group), h("label", {}, "Connection ", number),
      h("span", { class: "quiet" }, "the same connection as described and with the change; arrows are packets, time runs downwards"));
  }
}
