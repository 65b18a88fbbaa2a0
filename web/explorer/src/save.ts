// Saving: files, and pictures as SVG and PNG.

import { h } from "./page";

/** Hands the reader a file. */
export function saveFile(name: string, content: BlobPart, type: string) {
  const place = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: place, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(place), 10_000);
}

/** A table as CSV. */
export function csv(header: string[], rows: (string | number | null)[][]): string {
  const cell = (value: string | number | null) => {
    const text = value == null ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [header, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "font-weight", "font-size", "text-anchor", "display"];

/** The picture with its colours written into it, on a ground, with a line that says what it shows. */
export function standalone(svg: SVGSVGElement, caption: string): { text: string; width: number; height: number } {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const own = [svg, ...svg.querySelectorAll("*")], copied = [copy, ...copy.querySelectorAll("*")];
  own.forEach((element, index) => {
    const style = getComputedStyle(element);
    const target = copied[index] as SVGElement;
    for (const property of PROPERTIES) target.style.setProperty(property, style.getPropertyValue(property));
  });
  const box = svg.viewBox.baseVal;
  const [width, height] = box && box.width ? [box.width, box.height] : [svg.clientWidth, svg.clientHeight];
  const style = getComputedStyle(document.documentElement);
  const frame = document.createElementNS(svg.namespaceURI!, "svg");
  frame.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  frame.setAttribute("viewBox", `0 0 ${width} ${height + 24}`);
  frame.setAttribute("width", String(width));
  frame.setAttribute("height", String(height + 24));
  const ground = document.createElementNS(svg.namespaceURI!, "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", style.getPropertyValue("--card").trim());
  const words = document.createElementNS(svg.namespaceURI!, "text");
  words.setAttribute("x", "8");
  words.setAttribute("y", String(height + 16));
  words.setAttribute("fill", style.getPropertyValue("--quiet").trim());
  words.setAttribute("font-family", "system-ui, sans-serif");
  words.setAttribute("font-size", "11");
  words.textContent = caption;
  copy.setAttribute("x", "0");
  copy.setAttribute("y", "0");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  frame.append(ground, copy, words);
  return { text: new XMLSerializer().serializeToString(frame), width, height: height + 24 };
}

/** The picture as PNG, twice as large. */
export async function png(svg: SVGSVGElement, caption: string): Promise<Blob> {
  const { text, width, height } = standalone(svg, caption);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", { width: width * 2, height: height * 2 });
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser draws no pictures");
  context.scale(2, 2);
  context.drawImage(image, 0, 0, width, height);
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("this browser writes no PNG"))), "image/png"));
}

/** Buttons that save a picture, and its numbers if there are some. */
export function savers(name: string, picture: () => SVGSVGElement | null, caption: () => string, table?: () => string): HTMLElement {
  const button = (what: string, work: () => void) => h("button", { type: "button", class: "save", "aria-label": `Save ${name} as ${what}`, click: work }, what);
  const shown = (work: (svg: SVGSVGElement) => void) => () => { const svg = picture(); if (svg) work(svg); };
  return h("div", { class: "saves" },
    button("SVG", shown((svg) => saveFile(`fleetfoot-${name}.svg`, standalone(svg, caption()).text, "image/svg+xml"))),
    button("PNG", shown(async (svg) => saveFile(`fleetfoot-${name}.png`, await png(svg, caption()), "image/png"))),
    table && button("CSV", () => saveFile(`fleetfoot-${name}.csv`, table(), "text/csv")));
}
