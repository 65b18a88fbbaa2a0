// The script of report.html: chooses what charts show, saves them, sorts and filters the table, draws recorded flows.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import "./report.css";

const root = document.documentElement;
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();

root.classList.add("on");
// What a chart shows stands in an open table for readers without scripts; here the chart is enough.
for (const details of document.querySelectorAll("details.data")) details.open = false;
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});

for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    getSelection().selectAllChildren(code);
    // Where the clipboard is not to be had the command is at least selected.
    const copied = await navigator.clipboard?.writeText(code.textContent).then(() => true, () => false);
    button.textContent = copied ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}

// --- colour scheme -------------------------------------------------------------------------------------------------

const system = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
$("theme").addEventListener("click", () => {
  root.dataset.theme = dark() ? "light" : "dark";
  drawFlows();
});
system.addEventListener("change", () => drawFlows());

// --- what a chart shows --------------------------------------------------------------------------------------------

// One group at a time; without a script all of them stand below one another.
function choose(chart, group) {
  for (const figure of chart.querySelectorAll("figure")) figure.hidden = figure.dataset.group !== group;
}

for (const controls of document.querySelectorAll("[data-groups]")) {
  const chart = $(`chart-${controls.dataset.groups}`);
  choose(chart, controls.querySelector("button").value);
  controls.addEventListener("click", ({ target }) => {
    if (target.tagName !== "BUTTON") return;
    for (const button of controls.children) button.setAttribute("aria-pressed", String(button === target));
    choose(chart, target.value);
  });
}

// The legend of the distribution becomes a row of switches.
const chips = $("chips");
if (chips) {
  const lines = (index) => document.querySelectorAll(`#chart-distribution [data-line="${index}"]`);
  for (const entry of chips.children) {
    const index = entry.dataset.line;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...entry.childNodes);
    entry.append(button);
    const show = (shown) => {
      button.setAttribute("aria-pressed", String(shown));
      for (const line of lines(index)) line.classList.toggle("off", !shown);
    };
    show(!entry.classList.contains("more"));
    button.addEventListener("click", () => show(button.getAttribute("aria-pressed") !== "true"));
  }
}

// --- saving a chart ------------------------------------------------------------------------------------------------

const kept = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight"];

// The chart as a file of its own: its colours written out, on a ground, with a line that says where it is from.
function standalone(svg, caption) {
  const copy = svg.cloneNode(true);
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  const originals = svg.querySelectorAll("*"), copies = copy.querySelectorAll("*");
  const hidden = [];
  originals.forEach((original, i) => {
    const computed = getComputedStyle(original);
    if (computed.display === "none") hidden.push(copies[i]);
    for (const name of kept) copies[i].style.setProperty(name, computed.getPropertyValue(name));
  });
  for (const element of hidden) element.remove();
  const namespace = "http://www.w3.org/2000/svg";
  const tall = height + 44;
  copy.setAttribute("xmlns", namespace);
  copy.setAttribute("viewBox", `-12 -12 ${width + 24} ${tall}`);
  copy.setAttribute("width", width + 24);
  copy.setAttribute("height", tall);
  copy.removeAttribute("class");
  const ground = document.createElementNS(namespace, "rect");
  for (const [name, value] of Object.entries({ x: -12, y: -12, width: width + 24, height: tall, fill: style("--card") })) ground.setAttribute(name, value);
  const words = document.createElementNS(namespace, "text");
  words.setAttribute("y", height + 18);
  words.setAttribute("style", `font:10px sans-serif;fill:${style("--quiet")}`);
  words.textContent = caption;
  copy.prepend(ground);
  copy.append(words);
  return { text: new XMLSerializer().serializeToString(copy), width: width + 24, height: tall };
}

function download(name, href) {
  const link = document.createElement("a");
  link.download = name;
  link.href = href;
  link.click();
  if (href.startsWith("blob:")) setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

async function save(chart, ending) {
  const svg = [...chart.querySelectorAll("svg.ff")].find((one) => one.getClientRects().length);
  if (!svg) return;
  const { text, width, height } = standalone(svg, `${svg.getAttribute("aria-label")} · ${data.caption}`);
  const url = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const name = `fleetfoot-${chart.id.replace(/^chart-/, "")}.${ending}`;
  if (ending === "svg") return download(name, url);
  const image = new Image();
  image.src = url;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * width;
  canvas.height = 2 * height;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  download(name, canvas.toDataURL("image/png"));
}

for (const chart of document.querySelectorAll(".chart")) {
  const place = document.createElement("div");
  place.className = "saves";
  for (const ending of ["svg", "png"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "save";
    button.textContent = `Save ${ending.toUpperCase()}`;
    button.addEventListener("click", () => save(chart, ending));
    place.append(button);
  }
  chart.append(place);
}

// --- the ranked table: what the reader can change, and its order ----------------------------------------------------

const control = $("control");
control?.addEventListener("click", ({ target }) => {
  if (target.tagName !== "BUTTON") return;
  for (const button of control.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button === target));
  let shown = 0;
  for (const row of document.querySelectorAll(".rank tbody tr")) {
    row.hidden = target.value !== "" && row.dataset.needs !== target.value;
    if (!row.hidden) shown += 1;
  }
  // What is left may stand in the folded part.
  const rest = $("rest");
  if (rest && target.value !== "") rest.open = true;
  $("control-said").textContent = target.value === "" ? "" : `${shown} variants`;
});

// The first number of a cell, in its base unit; what has none comes last.
function amountOf(cell) {
  const text = cell.querySelector(".num")?.textContent ?? cell.textContent;
  const found = text.replace("\u2212", "-").match(/-?\d+(?:\.\d+)?(?:\s*(µs|ms|s\b|[kMG]?bit|[kMG]?B))?/);
  if (!found) return Infinity;
  const unit = { "µs": 1e-6, ms: 1e-3, kbit: 1e3, Mbit: 1e6, Gbit: 1e9, kB: 1e3, MB: 1e6, GB: 1e9 }[found[1]] ?? 1;
  return parseFloat(found[0]) * unit;
}

for (const table of document.querySelectorAll("table.rank")) {
  const body = table.tBodies[0];
  const order = [...body.rows];
  for (const [column, heading] of [...table.tHead.rows[0].cells].entries()) {
    if (heading.textContent === "Remarks" || heading.textContent === "Where") continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      // Up, down, and back to the order of the ranking.
      const next = { none: "ascending", ascending: "descending", descending: "none" }[heading.getAttribute("aria-sort") ?? "none"];
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      if (next === "none") return body.append(...order);
      heading.setAttribute("aria-sort", next);
      const sign = next === "ascending" ? 1 : -1;
      const words = heading.textContent === "Variant" || heading.textContent === "Significant";
      const key = new Map(order.map((row) => [row, words ? row.cells[column].textContent.trim() : amountOf(row.cells[column])]));
      const compare = (a, b) => {
        const [x, y] = [key.get(a), key.get(b)];
        if (words) return sign * x.localeCompare(y);
        if (x === y) return 0;
        return x === Infinity ? 1 : y === Infinity ? -1 : sign * (x - y);
      };
      body.append(...[...order].sort(compare));
    });
  }
}

// --- single flows --------------------------------------------------------------------------------------------------

const flowSelect = $("flow");
let plots = [];

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function extent(lists) {
  let low = Infinity, high = -Infinity;
  for (const list of lists) for (const value of list) if (value != null) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}

// Columns are stored as differences, times in microseconds.
function unpack(trace) {
  const whole = (steps) => { let value = 0; return steps.map((step) => (step == null ? null : (value += step))); };
  const seconds = (steps) => whole(steps).map((value) => value / 1e6);
  for (const name of ["sent", "again", "acked"]) trace[name] = [seconds(trace[name][0]), whole(trace[name][1])];
  trace.window_t = seconds(trace.window_t);
  for (const name of ["cwnd", "ssthresh", "pipe"]) trace[name] = whole(trace[name]);
}

const amount = (value) => value == null ? "–" : value >= 1e6 ? `${+(value / 1e6).toPrecision(3)} MB` : value >= 1e3 ? `${+(value / 1e3).toPrecision(3)} kB` : `${value} B`;

function plot(place, title, columns, series, x, y) {
  const box = document.createElement("div");
  box.className = "plot";
  const save = document.createElement("button");
  save.className = "save";
  save.type = "button";
  save.textContent = "Save PNG";
  save.setAttribute("aria-label", `Save PNG: ${title}`);
  box.append(save);
  place.append(box);
  const axis = { stroke: style("--quiet"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1 }, font: "11px system-ui, sans-serif", labelFont: "11px system-ui, sans-serif", labelSize: 16 };
  const made = new uPlot({
    width: Math.max(240, place.clientWidth), height: 230, title: undefined,
    scales: { x: { time: false, range: (_, low, high) => (low === high ? [low - 0.5, high + 0.5] : [low, high]) }, y: { range: () => [0, y * 1.05 || 1] } },
    axes: [
      { ...axis, label: "time (s)", space: 60 },
      { ...axis, label: title, size: 62, values: (_, ticks) => ticks.map(amount) },
    ],
    series: [{ label: "t (s)", value: (_, v) => (v == null ? "–" : v.toFixed(4)) }, ...series.map((one) => ({ width: 1.5, points: { show: false }, spanGaps: true, value: (_, v) => amount(v), ...one }))],
    cursor: { drag: { x: true, y: false }, sync: { key: "flows" } },
  }, columns, box);
  made.setScale("x", { min: x[0], max: x[1] });
  save.addEventListener("click", () => {
    download(`fleetfoot-${place.id}.png`, captioned(made.ctx.canvas, `${place.querySelector("h4").textContent}, ${flowSelect.value} · ${data.caption}`));
  });
  plots.push(made);
}

// The plot on an opaque ground with a line that says where it is from.
function captioned(plotted, text) {
  const canvas = document.createElement("canvas");
  const scale = devicePixelRatio || 1;
  canvas.width = plotted.width;
  canvas.height = plotted.height + 24 * scale;
  const context = canvas.getContext("2d");
  context.fillStyle = style("--card");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(plotted, 0, 0);
  context.fillStyle = style("--quiet");
  context.font = `${11 * scale}px system-ui, sans-serif`;
  context.fillText(text, 8 * scale, canvas.height - 8 * scale, canvas.width - 16 * scale);
  return canvas.toDataURL("image/png");
}

const stepped = uPlot.paths.stepped({ align: 1 });
const none = () => null;

// Segments of one burst leave at the same moment; a nanosecond apart each keeps its own point when the lines are joined.
function apart([times, values]) {
  let last = -Infinity;
  return [times.map((time) => (last = Math.max(time, last + 1e-9))), values];
}

function pane(place, trace, shared) {
  place.replaceChildren();
  const heading = document.createElement("h4");
  heading.textContent = trace ? data.variants[trace.variant] : "not recorded";
  place.append(heading);
  if (!trace) return;
  const dot = (color) => ({ paths: none, points: { show: true, size: 5, fill: color, stroke: color } });
  plot(place, "stream position", uPlot.join([apart(trace.sent), apart(trace.acked), apart(trace.again)]), [
    { label: "sent", stroke: "#0072B2", ...dot("#0072B2"), points: { show: true, size: 3, fill: "#0072B2", stroke: "#0072B2" } },
    { label: "acknowledged", stroke: "#009E73", paths: stepped },
    { label: "sent again", stroke: "#D55E00", ...dot("#D55E00") },
  ], shared.x, shared.bytes);
  plot(place, "window", [trace.window_t, trace.pipe, trace.cwnd, trace.ssthresh], [
    { label: "in flight", stroke: "#808790", fill: "#80879030", paths: stepped, width: 1 },
    { label: "cwnd", stroke: "#0072B2", paths: stepped, width: 2 },
    { label: "ssthresh", stroke: "#D55E00", dash: [6, 4], paths: stepped },
  ], shared.x, shared.window);
}

function drawFlows() {
  if (!flowSelect) return;
  for (const made of plots) made.destroy();
  plots = [];
  const of = (variant) => data.traces.find((trace) => trace.flow === flowSelect.value && trace.variant === Number(variant));
  const pair = [of($("left").value), of($("right").value)];
  const known = pair.filter(Boolean);
  const top = (lists) => extent(lists)[1];
  const window = top(known.flatMap((trace) => [trace.cwnd, trace.pipe]));
  const shared = {
    x: extent(known.flatMap((trace) => [trace.sent[0], trace.acked[0], trace.again[0]])),
    bytes: top(known.flatMap((trace) => [trace.sent[1], trace.acked[1], trace.again[1]])),
    window,
  };
  pane($("pane-left"), pair[0], shared);
  pane($("pane-right"), pair[1], shared);
}

if (flowSelect) {
  const flows = [...new Set(data.traces.map((trace) => trace.flow))];
  const recorded = [...new Set(data.traces.map((trace) => trace.variant))];
  const names = recorded.map((index) => [String(index), data.variants[index]]);
  for (const trace of data.traces) unpack(trace);
  options(flowSelect, flows.map((flow) => [flow, flow]), flows[0]);
  options($("left"), names, String(recorded[0]));
  options($("right"), names, String(recorded[1] ?? recorded[0]));
  for (const id of ["flow", "left", "right"]) $(id).addEventListener("change", drawFlows);
}

let width = innerWidth, pending;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(pending);
  pending = setTimeout(drawFlows, 150);
});
drawFlows();
root.dataset.drawn = "true";
