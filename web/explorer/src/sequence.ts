// One connection packet by packet, of up to two runs, over one time axis: play, pause, step, drag.

import { h, s, seconds } from "./page";
import { csv, savers } from "./save";
import type { Arrow, Diagram } from "./types";

export interface Panel { name: string; diagram: Diagram | null }

const COLOURS: Record<string, string> = {
  "handshake": "var(--quiet)", "new data": "#0072B2", "sent again": "#D55E00", "probe": "#CC79A7", "bundle": "#009E73", "acknowledgment": "var(--quiet)",
};
const WIDTH = 480, LEFT = 140, RIGHT = 320, TOP = 34;
const STEP = 1e-9;

interface Drawn { arrow: Arrow; end: number; line: SVGLineElement; head: SVGPathElement; label: SVGTextElement | null; lost: boolean }
interface View { svg: SVGSVGElement; show(at: number): void; ends: number[] }

/** The end of an arrow: it arrived, was dropped, or nothing is known. */
const endOf = (arrow: Arrow) => arrow.arrived_s ?? arrow.dropped_s ?? arrow.sent_s;

function view(panel: Panel, span: number, height: number): View {
  const y = (at: number) => TOP + (at / span) * height;
  const svg = s("svg", { class: "ff sequence", viewBox: `0 0 ${WIDTH} ${height + TOP + 24}`, role: "img", "aria-label": `${panel.name}: ${panel.diagram ? `${panel.diagram.segments} packets, ${panel.diagram.arrows.filter((arrow) => arrow.dropped_s !== null).length} of them lost` : "no such connection"}` });
  for (const [x, name] of [[LEFT, "sender"], [RIGHT, "receiver"]] as const) {
    svg.append(s("text", { class: "b", x, y: 20, "text-anchor": "middle" }, name), s("line", { x1: x, x2: x, y1: TOP - 6, y2: height + TOP + 16, style: "stroke:var(--quiet)" }));
  }
  const now = s("line", { x1: LEFT - 6, x2: RIGHT + 6, style: "stroke:var(--accent);stroke-width:1;stroke-dasharray:3 3" });
  const low = [-99, -99];
  const drawn: Drawn[] = (panel.diagram?.arrows ?? []).map((arrow) => {
    const lost = arrow.arrived_s === null;
    const colour = COLOURS[arrow.what] ?? "var(--quiet)";
    const from = arrow.back ? RIGHT : LEFT;
    const line = s("line", { x1: from, y1: y(arrow.sent_s), style: `stroke:${colour};stroke-width:1.3${lost ? ";stroke-dasharray:4 3" : ""}` });
    const head = lost ? s("path", { d: "M-4 -4l8 8m0-8l-8 8", style: "stroke:#d55e00;stroke-width:2" }) : s("path", { d: arrow.back ? "M0 0l6-3v6z" : "M0 0l-6-3v6z", style: `fill:${colour}` });
    let label: SVGTextElement | null = null;
    const side = Number(arrow.back), place = y(arrow.sent_s) + 3;
    if (place - low[side] > 12) {
      low[side] = place;
      const words = `${arrow.label}${arrow.dropped_s !== null ? " lost" : ""}`;
      label = s("text", { x: arrow.back ? RIGHT + 8 : LEFT - 8, y: place, "text-anchor": arrow.back ? "start" : "end", style: "font-size:11px" }, words.length > 23 ? `${words.slice(0, 22)}…` : words, s("title", {}, words));
    }
    svg.append(line, head);
    if (label) svg.append(label);
    return { arrow, end: endOf(arrow), line, head, label, lost };
  });
  const timers = (panel.diagram?.timers ?? []).filter((timer) => timer.at_s <= span).map((timer) => {
    const mark = s("g", {}, s("circle", { cx: LEFT, cy: y(timer.at_s), r: 4, style: "fill:#d55e00" }), s("text", { x: LEFT + 9, y: y(timer.at_s) + 4, style: "font-size:11px;fill:var(--bad);paint-order:stroke;stroke:var(--card);stroke-width:4px", class: "b" }, `${timer.what} ${seconds(timer.at_s)}`));
    svg.append(mark);
    return { mark, at: timer.at_s };
  });
  svg.append(now);
  const show = (at: number) => {
    now.setAttribute("y1", String(y(at)));
    now.setAttribute("y2", String(y(at)));
    for (const one of drawn) {
      const { arrow, end, line, head, label, lost } = one;
      const visible = arrow.sent_s <= at + STEP;
      line.style.display = head.style.display = visible ? "" : "none";
      if (label) label.style.display = visible ? "" : "none";
      if (!visible) continue;
      const share = end > arrow.sent_s ? Math.min(1, (at - arrow.sent_s) / (end - arrow.sent_s)) : 1;
      const reach = lost ? 0.5 : 1;
      const [from, to] = arrow.back ? [RIGHT, LEFT] : [LEFT, RIGHT];
      const x = from + (to - from) * share * reach, down = y(arrow.sent_s + (end - arrow.sent_s) * share);
      line.setAttribute("x2", String(x));
      line.setAttribute("y2", String(down));
      head.setAttribute("transform", `translate(${x} ${down})`);
      if (lost && share < 1) head.style.display = "none";
    }
    for (const { mark, at: when } of timers) mark.style.display = when <= at + STEP ? "" : "none";
  };
  const moments = drawn.flatMap(({ arrow, end }) => [arrow.sent_s, end]).concat(timers.map(({ at }) => at));
  return { svg, show, ends: moments };
}

/** The diagrams with their controls. They stop playing when they leave the page. */
export function sequence(panels: Panel[], heading: HTMLElement, caption: () => string): HTMLElement {
  const known = panels.filter((panel) => panel.diagram);
  const span = Math.max(1e-6, ...known.flatMap((panel) => panel.diagram!.arrows.map(endOf)));
  const count = Math.max(...known.map((panel) => panel.diagram!.arrows.length), 1);
  const height = Math.min(2400, Math.max(300, count * 12));
  const views = panels.map((panel) => view(panel, span, height));
  const moments = [...new Set(views.flatMap((one) => one.ends).map((at) => Number(at.toFixed(9))))].sort((a, b) => a - b);
  let at = span, playing = 0, last = 0;
  const windows = views.map((one, index) => h("div", { class: "window", tabindex: 0, role: "group", "aria-label": `Packets, ${panels[index].name}` }, one.svg));
  const slider = h("input", { type: "range", min: 0, max: 1000, step: "any", value: 1000, "aria-label": "Time of the diagram", input: () => { pause(); move((Number(slider.value) / 1000) * span); } });
  const clock = h("output", { class: "clock" });
  const speed = h("select", { "aria-label": "Speed" }, ...[["6", "fast"], ["16", "slow"], ["60", "very slow"]].map(([value, name]) => h("option", { value, selected: value === "16" }, name)));
  const play = h("button", { type: "button", class: "play", click: () => (playing ? pause() : start()) }, "▶ Play");
  const move = (time: number, follow = true) => {
    at = Math.max(0, Math.min(span, time));
    slider.value = String((at / span) * 1000);
    slider.setAttribute("aria-valuetext", seconds(at));
    clock.textContent = `${seconds(at)} of ${seconds(span)}`;
    for (const one of views) one.show(at);
    if (!follow) return;
    for (const [index, place] of windows.entries()) {
      const scale = views[index].svg.getBoundingClientRect().width / WIDTH;
      const down = (TOP + (at / span) * height) * scale;
      if (scale > 0 && (down > place.scrollTop + place.clientHeight * 0.8 || down < place.scrollTop + 20)) place.scrollTop = down - place.clientHeight * 0.6;
    }
  };
  const tick = (time: number) => {
    if (!playing) return;
    if (!slider.isConnected) return pause();
    const passed = Math.min(0.1, (time - last) / 1000);
    last = time;
    move(at + (span * passed) / Number(speed.value));
    if (at >= span) pause();
    else playing = requestAnimationFrame(tick);
  };
  const start = () => {
    if (at >= span) move(0);
    last = performance.now();
    play.textContent = "⏸ Pause";
    playing = requestAnimationFrame(tick);
  };
  const pause = () => {
    cancelAnimationFrame(playing);
    playing = 0;
    play.textContent = "▶ Play";
  };
  const step = (forward: boolean) => {
    pause();
    const next = forward ? moments.find((moment) => moment > at + STEP) : moments.findLast((moment) => moment < at - STEP);
    move(next ?? (forward ? span : 0));
  };
  // Dragging along a picture moves the time.
  for (const [index, place] of windows.entries()) {
    const drag = (event: PointerEvent) => {
      const box = views[index].svg.getBoundingClientRect();
      move((((event.clientY - box.top) / box.width) * WIDTH - TOP) / height * span, false);
    };
    place.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0 || event.offsetX > place.clientWidth) return;
      pause();
      drag(event);
      place.setPointerCapture(event.pointerId);
      place.onpointermove = drag;
    });
    place.addEventListener("pointerup", () => { place.onpointermove = null; });
  }
  move(span, false);
  const table = () => csv(["variant", "sent_s", "arrived_s", "dropped_s", "from", "what", "label"], panels.flatMap((panel) => (panel.diagram?.arrows ?? []).map((arrow) =>
    [panel.name, arrow.sent_s, arrow.arrived_s, arrow.dropped_s, arrow.back ? "receiver" : "sender", arrow.what, arrow.label])));
  const more = known.some((panel) => panel.diagram!.segments > panel.diagram!.arrows.length);
  return h("section", { class: "card", "aria-label": "Packet by packet" },
    h("h3", {}, "Packet by packet"),
    heading,
    known.length ? h("div", { class: "player" },
      play,
      h("button", { type: "button", click: () => step(false) }, "‹ Step"),
      h("button", { type: "button", click: () => step(true) }, "Step ›"),
      slider, clock, speed) : null,
    h("ul", { class: "chips plain" }, ...Object.entries(COLOURS).filter(([what]) => known.some((panel) => panel.diagram!.arrows.some((arrow) => arrow.what === what))).map(([what, colour]) =>
      h("li", {}, h("span", { class: "swatch", style: `background:${colour}` }), what)), h("li", {}, h("span", { class: "cross" }, "×"), "lost"), h("li", {}, h("span", { class: "dot" }), "a timer fired")),
    h("div", { class: `windows n${panels.length}` }, ...panels.map((panel, index) => h("div", {}, h("h4", {}, panel.name), panel.diagram ? h("div", {}, windows[index], savers(index ? "packets-changed" : "packets", () => views[index].svg, () => `${panel.name} · ${caption()}`, index ? undefined : table)) : h("p", { class: "hint" }, "This run has no such connection.")))),
    more ? h("p", { class: "hint" }, "Only the first 400 packets are drawn.") : null);
}
