// The script of report.html: draws the charts that the report's tables already tell.
import embed from "vega-embed";
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
  drawAll();
});
system.addEventListener("change", () => drawAll());

// --- charts of Vega-Lite -------------------------------------------------------------------------------------------

const distributions = data.distributions.flatMap((line) =>
  line.fct_s.map((fct_s, i) => ({
    variant: data.variants[line.variant], group: line.group, fct_s, share: line.share[i],
  })));
const parameters = { visible: data.variants.slice(0, 5) };
const views = new Map();

function theme(width) {
  const ink = style("--ink"), quiet = style("--quiet"), line = style("--line");
  return {
    background: null,
    font: getComputedStyle(document.body).fontFamily,
    view: { stroke: null },
    axis: {
      domainColor: line, gridColor: line, gridOpacity: 0.7, tickColor: line, labelColor: quiet, titleColor: quiet,
      titleFontWeight: 500, labelFontSize: 11, titleFontSize: 11.5, titlePadding: 8,
    },
    axisY: { labelLimit: width < 480 ? 108 : 190, labelColor: ink, grid: false },
    axisYQuantitative: { grid: true },
    axisX: { tickCount: width < 480 ? 4 : 6 },
    legend: { labelColor: ink, labelFontSize: 12, titleColor: quiet, symbolSize: 80, columns: width < 480 ? 2 : undefined },
    text: { color: ink, fontSize: 11 },
  };
}

async function draw({ id, spec }) {
  const place = $(`chart-${id}`);
  if (!place) return;
  const own = structuredClone(spec);
  for (const parameter of own.params ?? []) {
    if (parameter.name === "visible") parameter.value = parameters.visible;
    else if (parameters[id]) parameter.value = parameters[id];
  }
  // Every figure says where it is from, also when it has been saved.
  own.title = { text: data.caption, orient: "bottom", anchor: "start", fontSize: 10, fontWeight: 400, color: style("--quiet"), offset: 6, limit: Math.max(200, place.clientWidth - 60) };
  if (own.data.name === "distributions") own.datasets = { distributions };
  const columns = own.encoding?.x?.axis;
  if (columns?.orient === "top" && place.clientWidth < 600) {
    Object.assign(columns, { labelAngle: -35, labelAlign: "left" });
    own.width = { step: 46 };
  }
  if (own.layer && place.clientWidth < 480) {
    for (const layer of own.layer) if (layer.mark.limit) layer.mark.limit = 90;
  }
  views.get(id)?.finalize();
  const result = await embed(place, own, {
    ast: true, logLevel: 1, renderer: "svg", config: theme(place.clientWidth), tooltip: { theme: dark() ? "dark" : "light" },
    actions: { export: { svg: true, png: true }, source: false, compiled: false, editor: false },
    downloadFileName: `fleetfoot-${id}`, scaleFactor: 2,
    i18n: { CLICK_TO_VIEW_ACTIONS: "Save this chart" },
  });
  views.set(id, result);
  place.querySelector("svg.marks")?.setAttribute("aria-label", spec.description);
}

async function set(id, name, value) {
  const result = views.get(id);
  if (result) await result.view.signal(name, value).runAsync();
}

for (const controls of document.querySelectorAll("[data-groups]")) {
  controls.addEventListener("click", ({ target }) => {
    if (target.tagName !== "BUTTON") return;
    for (const button of controls.children) button.setAttribute("aria-pressed", String(button === target));
    const id = controls.dataset.groups;
    parameters[id] = target.value;
    // Another group may have other bars, so the chart is laid out again.
    draw(data.charts.find((chart) => chart.id === id));
  });
}

function sample(index) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", "22");
  svg.setAttribute("height", "6");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", "M0 3H22");
  line.setAttribute("stroke", data.colors[index]);
  line.setAttribute("stroke-width", "3");
  line.setAttribute("stroke-dasharray", data.dashes[index].join(" "));
  svg.append(line);
  return svg;
}

const chips = $("chips");
if (chips) {
  data.variants.forEach((name, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(sample(index), name);
    button.setAttribute("aria-pressed", String(parameters.visible.includes(name)));
    button.addEventListener("click", () => {
      const shown = new Set(parameters.visible);
      if (!shown.delete(name)) shown.add(name);
      parameters.visible = data.variants.filter((variant) => shown.has(variant));
      button.setAttribute("aria-pressed", String(shown.has(name)));
      set("distribution", "visible", parameters.visible);
    });
    chips.append(button);
  });
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

const amount = (value) => value == null ? "–" : value >= 1e6 ? `${+(value / 1e6).toPrecision(3)} MB` : value >= 1e3 ? `${+(value / 1e3).toPrecision(3)} kB` : `${value} B`;

function plot(place, title, columns, series, x, y) {
  const box = document.createElement("div");
  box.className = "plot";
  const save = document.createElement("button");
  save.className = "save";
  save.type = "button";
  save.textContent = "Save PNG";
  save.setAttribute("aria-label", `Save the chart of the ${title} as PNG`);
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
    const link = document.createElement("a");
    link.download = `fleetfoot-${place.id}.png`;
    link.href = captioned(made.ctx.canvas, `${place.querySelector("h4").textContent}, ${flowSelect.value} · ${data.caption}`);
    link.click();
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
  options(flowSelect, flows.map((flow) => [flow, flow]), flows[0]);
  options($("left"), names, String(recorded[0]));
  options($("right"), names, String(recorded[1] ?? recorded[0]));
  for (const id of ["flow", "left", "right"]) $(id).addEventListener("change", drawFlows);
}

// --- all together --------------------------------------------------------------------------------------------------

async function drawAll() {
  drawFlows();
  for (const chart of data.charts) await draw(chart);
  root.dataset.drawn = "true";
}

let width = innerWidth, pending;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(pending);
  pending = setTimeout(drawAll, 150);
});
drawAll();
