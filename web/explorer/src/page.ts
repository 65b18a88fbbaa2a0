// Small helpers to make elements.

export type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

function filled<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** An HTML element. A function among the attributes listens to the event of that name. */
export function h<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return filled(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/** The element with this id. */
export function byId<E extends HTMLElement = HTMLElement>(id: string): E {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element as E;
}

let numbers = 0;
/** An id that no other element has. */
export const fresh = (name: string) => `${name}-${++numbers}`;

/** A time for people: `12.3 ms`. */
export function seconds(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const digits = (number: number) => number >= 100 ? number.toFixed(0) : number >= 10 ? number.toFixed(1) : number.toFixed(2);
  return Math.abs(value) >= 1 ? `${digits(value)} s` : `${digits(value * 1e3)} ms`;
}

/** A time to wait, roughly. */
export function about(value: number): string {
  if (value < 1.5) return "a second";
  if (value < 90) return `${Math.round(value)} s`;
  return value < 5400 ? `${Math.round(value / 60)} minutes` : `${Math.round(value / 3600)} hours`;
}
