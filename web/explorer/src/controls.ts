// What can be moved: sliders, the load, mechanisms.

import { h, fresh, seconds } from "./page";
import { quantity, short, time } from "./quantity";
import type { Checked, Control, Mechanism, Trouble } from "./types";

/** What the reader changed: values by path as text, and the factor of the load. */
export interface Moved { set: Map<string, string>; load: number }

/** How far a slider goes from the value that stands in the file. */
const RANGE = 16;

/** Changes as `--set` takes them; the load's are computed of what stands in the file. */
export function settings(moved: Moved, controls: Control[]): string[] {
  const set = [...moved.set].map(([path, value]) => `${path}=${value}`);
  if (moved.load === 1) return set;
  const load = controls.find((control) => control.kind === "load");
  for (const { path, value } of load?.values ?? []) {
    if (typeof value === "number") set.push(`${path}=${Math.max(1, Math.round(value * moved.load))}`);
    else {
      const parts = quantity(value);
      if (parts) set.push(`${path}=${short(parts.number * moved.load)} ${parts.unit}`);
    }
  }
  return set;
}

interface Field { place: HTMLElement; paths: string[]; fail(words: string | null): void }

/** A slider with its text. `back` is its value in the file. */
function field(label: string, text: string, position: number, options: { low: number; high: number; step: number; told: (position: number) => string; hint?: string }, changed: (position: number, text: string | null) => void): Omit<Field, "paths"> {
  const id = fresh("field"), wrong = fresh("wrong");
  const slider = h("input", { type: "range", id, min: options.low, max: options.high, step: options.step, value: position, "aria-valuetext": text, input: () => {
    const at = Number(slider.value);
    words.value = options.told(at);
    slider.setAttribute("aria-valuetext", words.value);
    changed(at, null);
  } });
  const words = h("input", { type: "text", value: text, "aria-label": `${label}, as text`, spellcheck: false, autocomplete: "off", "aria-describedby": wrong, change: () => changed(NaN, words.value.trim()) });
  const message = h("p", { class: "wrong", id: wrong, hidden: true, role: "alert" });
  const place = h("div", { class: "field" }, h("label", { for: id }, label), words, slider, options.hint ? h("small", {}, options.hint) : null, message);
  return { place, fail(text) {
    message.hidden = text === null;
    message.textContent = text ?? "";
    place.classList.toggle("bad", text !== null);
    words.setAttribute("aria-invalid", String(text !== null));
  } };
}

/** The sliders of a scenario. */
export class Controls {
  readonly element = h("div", { class: "fields" });
  private fields: Field[] = [];

  /** `changed` is called with whether it may go on moving. */
  constructor(private readonly changed: (moving: boolean) => void) {}

  show(checked: Checked, moved: Moved) {
    this.fields = checked.controls.map((control) => this.one(control, moved)).filter((one): one is Field => one !== null);
    this.element.replaceChildren(...this.fields.map((field) => field.place));
  }

  /** Puts a message at the field it is about; `false`: it is about none. */
  fail(trouble: Trouble | null): boolean {
    let found = false;
    for (const field of this.fields) {
      const own = trouble !== null && trouble.key !== "" && field.paths.some((path) => path === trouble.key || trouble.key.startsWith(`${path}.`));
      found ||= own;
      field.fail(own && trouble ? [trouble.message, ...trouble.help].join("; ") : null);
    }
    return found;
  }

  private one(control: Control, moved: Moved): Field | null {
    if (control.kind === "load") {
      const told = (position: number) => `× ${short(2 ** position)}`;
      const made = field(control.label, told(Math.log2(moved.load)), Math.log2(moved.load), { low: -3, high: 3, step: 0.25, told, hint: "number of users, rate of arrivals" }, (position, text) => {
        const factor = text === null ? 2 ** position : Number(text.replace(/^[×x*]?\s*/, "") || NaN);
        if (!(factor > 0 && factor < Infinity)) return made.fail("a factor is wanted, such as × 2");
        made.fail(null);
        moved.load = factor;
        this.changed(text === null);
      });
      return { ...made, paths: (control.values ?? []).map((value) => value.path) };
    }
    const put = (text: string, moving: boolean) => {
      if (text === control.value) moved.set.delete(control.path);
      else moved.set.set(control.path, text);
      this.changed(moving);
    };
    const now = moved.set.get(control.path) ?? control.value;
    if (control.kind === "rtt") {
      // The reader moves the RTT; what changes is the delay of the bottleneck.
      const own = time(control.value), ways = control.ways ?? 2, rtt = control.rtt_s;
      const current = time(now);
      if (own === null || rtt == null || current === null) return null;
      const rest = rtt - own * ways;
      const told = (delay: number) => seconds(rest + delay * ways).replace(/\.0+ /, " ");
      const least = Math.max(own / 50, 1e-6);
      const at = (delay: number) => Math.log2(Math.max(delay, least) / least);
      const delay = (position: number) => least * 2 ** position;
      const made = field(control.label, told(current), at(current), { low: 0, high: at(own * RANGE), step: 0.05, told: (position) => told(delay(position)) }, (position, text) => {
        if (text === null) return put(`${short(delay(position) * 1e6)} us`, true);
        const wanted = time(text);
        if (wanted === null) return made.fail("a time with its unit is wanted, such as 40 ms");
        if (wanted < rest) return made.fail(`the other links alone take ${seconds(rest)}`);
        made.fail(null);
        put(`${short((wanted - rest) / ways * 1e6)} us`, false);
      });
      return { ...made, paths: [control.path] };
    }
    const base = quantity(control.value), current = quantity(now) ?? base;
    if (!base || !current || !(base.number > 0)) return null;
    const at = current.unit === base.unit && current.number > 0 ? Math.log2(current.number / base.number) : 0;
    const limit = Math.log2(RANGE);
    const whole = /packet/.test(base.unit);
    const told = (position: number) => {
      const value = base.number * 2 ** position;
      return position === 0 ? control.value : `${whole ? Math.max(1, Math.round(value)) : short(value)} ${base.unit}`;
    };
    const made = field(control.label, now, Math.max(-limit, Math.min(limit, at)), { low: -limit, high: limit, step: 0.125, told }, (position, text) => put(text ?? told(position), text === null));
    return { ...made, paths: [control.path] };
  }
}

/** Mechanisms that a comparison begins with where the file names no variants: the easiest of each place to change something. */
const FIRST = ["fq-codel", "cake", "favourtail", "bbr3", "pacing", "tail-loss-probe", "rdb", "super-packets", "initial-window-20"];
const FIRST_COUNT = 4;

/** What is compared first. */
export function firstChoice(checked: Checked): string[] {
  return (checked.own.length ? checked.own : FIRST.filter((name) => checked.variants.includes(name))).slice(0, FIRST_COUNT);
}

/** The list of what can be compared, to choose from. */
export class Choice {
  readonly element = h("fieldset", { class: "choice" });
  private count = h("span", { class: "quiet" });

  constructor(private readonly changed: () => void) {}

  show(checked: Checked, mechanisms: Mechanism[], chosen: Set<string>) {
    const about = new Map(mechanisms.map((mechanism) => [mechanism.name, mechanism]));
    const families = new Map<string, string[]>();
    const add = (family: string, name: string) => families.set(family, [...(families.get(family) ?? []), name]);
    if (checked.own.length) for (const name of checked.own) add("of this file", name);
    const applies = new Set(checked.own.length ? mechanisms.map(({ name }) => name) : checked.variants);
    for (const { name, family } of mechanisms) if (applies.has(name) && !checked.own.includes(name)) add(family, name);
    const reasons = new Map(checked.inapplicable.map((entry) => [entry.name, entry.reason]));
    const tell = () => { this.count.textContent = `${chosen.size} chosen`; };
    const box = (name: string) => {
      const input = h("input", { type: "checkbox", checked: chosen.has(name), change: () => {
        if (input.checked) chosen.add(name);
        else chosen.delete(name);
        tell();
        this.changed();
      } });
      const document = about.get(name)?.document;
      return h("label", { class: "box", title: document ?? false }, input, name);
    };
    tell();
    const all = checked.own.length ? checked.own : checked.variants;
    this.element.replaceChildren(
      h("legend", {}, "Compare with ", this.count),
      ...[...families].map(([family, names]) => h("details", { open: names.some((name) => chosen.has(name)) }, h("summary", {}, family), h("div", { class: "boxes" }, ...names.map(box)))),
      h("div", { class: "row" },
        h("button", { type: "button", click: () => { for (const name of all) chosen.add(name); this.show(checked, mechanisms, chosen); this.changed(); } }, `All ${all.length}`),
        h("button", { type: "button", click: () => { chosen.clear(); for (const name of firstChoice(checked)) chosen.add(name); this.show(checked, mechanisms, chosen); this.changed(); } }, "A few")),
      reasons.size ? h("details", {}, h("summary", {}, `${reasons.size} do not apply here`), h("ul", { class: "lines" }, ...[...reasons].map(([name, reason]) => h("li", {}, `${name}: ${reason}`)))) : "");
  }
}
