// The page: it puts the controls and one or two settings together.

import "./explorer.css";
import { Choice, Controls, firstChoice } from "./controls";
import { Crew } from "./crew";
import { Refused, ServerEngine, unpacked, WorkerEngine, type Engine } from "./engine";
import { byId, h } from "./page";
import { say } from "./results";
import { opened, packed, type Shared } from "./share";
import { Side } from "./side";
import type { Hello, Opened, Trouble } from "./types";

/** After the last move of a slider, so long (ms) until the comparison begins. */
const PAUSE = 50;

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
byId("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  root.dataset.theme = dark ? "light" : "dark";
});

const source = document.getElementById("engine")?.textContent?.trim() ?? "";
let makeEngine: () => Engine = () => new ServerEngine();
/** The engine that ranks, and those that make runs for it; behind `serve` the program has threads of its own. */
let makeRanker: () => [Engine, Crew | null] = () => [makeEngine(), null];

/** Workers that make runs, at most: each takes some tens of MB. */
const CREW = 4;

let hello: Hello;
const sides: Side[] = [];
let active = 0;
let pending: ReturnType<typeof setTimeout> | undefined;

const message = byId("message");
const text = byId<HTMLTextAreaElement>("text");
const examples = byId<HTMLSelectElement>("example");
const controls = new Controls((moving) => changed(moving ? PAUSE : 0));
const choice = new Choice(() => changed(0));
byId("controls").append(controls.element);
byId("mechanisms").append(choice.element);

/** Says at the field of the file what is wrong with it; `null`: nothing. */
function tellOfFile(words: string | null) {
  const place = byId("file-wrong");
  place.hidden = words === null;
  place.textContent = words ?? "";
  byId("file").setAttribute("aria-invalid", String(words !== null));
  if (words) say(words);
}

function tell(trouble: Trouble | null) {
  const atField = controls.fail(trouble);
  message.replaceChildren();
  message.hidden = trouble === null || atField;
  if (trouble === null) return;
  say(trouble.message);
  if (atField) return;
  message.append(h("strong", {}, trouble.line ? `${trouble.file}, line ${trouble.line}${trouble.key ? `, ${trouble.key}` : ""}: ` : ""), trouble.message,
    ...(trouble.line ? [] : trouble.help.map((help) => h("span", { class: "help" }, help))),
    trouble.line ? h("pre", { tabindex: 0 }, trouble.text) : "");
  if (trouble.line && trouble.file === sides[active]?.file.name) byId<HTMLDetailsElement>("edit").open = true;
}

function changed(pause: number) {
  clearTimeout(pending);
  pending = setTimeout(() => { void sides[active].run(); void remember(); }, pause);
}

async function remember() {
  // Files that came with a scenario are too long for an address.
  if (sides.some((side) => side.file.files?.length)) return history.replaceState(null, "", location.pathname + location.search);
  const shared: Shared[] = sides.map((side) => {
    const example = hello.examples.find((one) => `${one.name}.toml` === side.file.name && one.text === side.file.toml);
    return { name: side.file.name, ...(example ? {} : { toml: side.file.toml }), set: [...side.moved.set].map(([path, value]) => `${path}=${value}`), only: [...side.chosen], load: side.moved.load };
  });
  history.replaceState(null, "", await packed(shared));
}

/** Reads a file into the active setting and compares. */
async function load(file: Opened, shared?: Shared) {
  const side = sides[active];
  clearTimeout(pending);
  tellOfFile(null);
  side.file = file;
  side.moved = { set: new Map(), load: 1 };
  for (const set of shared?.set ?? []) {
    const at = set.indexOf("=");
    if (at > 0) side.moved.set.set(set.slice(0, at), set.slice(at + 1));
  }
  if (shared?.load && shared.load > 0) side.moved.load = shared.load;
  showFile(file);
  const checked = await side.check();
  if (!checked) return;
  tell(null);
  side.chosen = new Set(shared?.only ?? firstChoice(checked));
  panel();
  await Promise.all([side.run(), remember()]);
}

function showFile(file: Opened) {
  text.value = file.toml;
  byId("capture").hidden = !file.about;
  byId("capture-text").textContent = file.about ?? "";
}

/** Shows the controls of the active setting. */
function panel() {
  const side = sides[active];
  showFile(side.file);
  const example = hello.examples.find((one) => one.text === side.file.toml);
  examples.value = example?.name ?? "";
  if (side.checked) {
    controls.show(side.checked, side.moved);
    choice.show(side.checked, hello.mechanisms, side.chosen);
  }
  byId("reset").hidden = side.moved.set.size === 0 && side.moved.load === 1;
  const tabs = byId("tabs");
  tabs.hidden = sides.length < 2;
  tabs.replaceChildren(...sides.map((one, index) => h("button", { type: "button", "aria-pressed": String(index === active), click: () => { active = index; panel(); } }, `Setting ${one.title}`)));
  sides.forEach((one, index) => one.element.classList.toggle("active", sides.length > 1 && index === active));
  byId("second").textContent = sides.length < 2 ? "Set a second one beside it" : "Back to one setting";
}

function addSide(title: string): Side {
  const [ranker, crew] = makeRanker();
  const side: Side = new Side(ranker, makeEngine(), crew, title, (trouble) => { if (sides[active] === side) tell(trouble); });
  sides.push(side);
  byId("sides").append(side.element);
  byId("sides").className = `sides n${sides.length}`;
  return side;
}

async function second() {
  if (sides.length > 1) {
    const [gone] = sides.splice(1 - active, 1);
    gone.stop();
    gone.element.remove();
    active = 0;
    byId("sides").className = "sides n1";
    panel();
    await remember();
    return;
  }
  const first = sides[0];
  const other = addSide("B");
  active = 1;
  await load(first.file, { name: first.file.name, set: [...first.moved.set].map(([path, value]) => `${path}=${value}`), only: [...first.chosen], load: first.moved.load });
  panel();
  other.element.scrollIntoView({ block: "nearest" });
}

/** How captures begin: pcapng; pcap in either byte order, with micro- or nanoseconds. */
const CAPTURES = ["0a0d0d0a", "a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1"];

async function isCapture(file: File): Promise<boolean> {
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  return /\.(pcap|pcapng|cap|cvec)(\.gz|\.zst)?$/i.test(file.name) || CAPTURES.includes(Array.from(head, (byte) => byte.toString(16).padStart(2, "0")).join(""));
}

async function readFile(file: File) {
  const size = `${(file.size / 1e6).toFixed(1)} MB`;
  const side = sides[active];
  tellOfFile(null);
  if (!await isCapture(file)) {
    if (file.size > hello.most_text) return tellOfFile(`${file.name} has ${size}; a scenario file of more than 1 MB is not read here`);
    return load({ name: file.name, toml: await file.text() });
  }
  if (file.size > hello.most_capture) return tellOfFile(`${file.name} (${size}) is a capture of more than ${hello.most_capture / 1e6} MB, the most that is read here: make a scenario of it with \`fleetfoot import ${file.name}\`, and open that behind \`fleetfoot serve\``);
  try {
    const imported = await side.read(file.name, new Uint8Array(await file.arrayBuffer()));
    if (!imported || side !== sides[active]) return;
    const { name, toml, files, summary, fit, damage } = imported;
    await load({ name, toml, files, about: [damage ? `It was read up to ${damage}. What came before is imported.\n` : "", summary, fit ?? ""].filter(Boolean).join("\n") });
  } catch (error) {
    tellOfFile(error instanceof Refused ? error.trouble.message : String(error));
  }
}

async function start() {
  // On a phone the answer comes first.
  if (matchMedia("(max-width: 60rem)").matches) byId<HTMLDetailsElement>("knobs").open = false;
  if (source) {
    const module = await WebAssembly.compile(await unpacked(source));
    const own = () => new WorkerEngine(module);
    const count = Math.min(CREW, navigator.hardwareConcurrency || 1);
    makeEngine = own;
    makeRanker = () => {
      const ranker = own();
      return [ranker, count > 1 ? new Crew(ranker, own, count) : null];
    };
  }
  addSide("A");
  const engine = makeEngine();
  hello = await engine.ask<Hello>({ do: "hello" });
  byId("version").textContent = `Fleetfoot ${hello.fleetfoot}${hello.commit ? ` (${hello.commit})` : ""}, ${source ? "running in this page" : "running in the program"}`;
  examples.replaceChildren(h("option", { value: "" }, "a file of mine"), ...hello.examples.map((one) => h("option", { value: one.name }, one.name.replaceAll("-", " "))));
  examples.addEventListener("change", () => {
    const example = hello.examples.find((one) => one.name === examples.value);
    if (example) void load({ name: `${example.name}.toml`, toml: example.text });
  });
  const picker = byId<HTMLInputElement>("file");
  picker.addEventListener("change", () => { if (picker.files?.[0]) void readFile(picker.files[0]); picker.value = ""; });
  addEventListener("dragover", (event) => { event.preventDefault(); root.classList.add("drop"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) root.classList.remove("drop"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    root.classList.remove("drop");
    const file = event.dataTransfer?.files[0];
    if (file) void readFile(file);
  });
  byId("apply").addEventListener("click", () => void load({ ...sides[active].file, toml: text.value }));
  byId("reset").addEventListener("click", () => void load(sides[active].file));
  byId("second").addEventListener("click", () => void second());
  const said = (words: string) => {
    say(words);
    byId("share").textContent = words;
    setTimeout(() => { byId("share").textContent = "Copy link"; }, 2500);
  };
  byId("share").addEventListener("click", async () => {
    await remember();
    if (!location.hash) return said("A capture fits into no link");
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    said(copied ? "Link copied" : "Link is in the address bar");
  });
  const given = document.getElementById("given")?.textContent;
  const file = given ? (JSON.parse(given) as { name: string; toml: string } | null) : null;
  const shared = await opened(location.hash);
  const home = { name: "home-line.toml", toml: hello.examples.find((one) => one.name === "home-line")?.text ?? "" };
  for (const [index, one] of (shared ?? [null]).entries()) {
    if (index > 0) addSide("B");
    active = index;
    const example = one && hello.examples.find((example) => `${example.name}.toml` === one.name);
    const begin = one ? { name: one.name, toml: one.toml ?? example?.text ?? home.toml } : (file ?? home);
    const loading = load(begin, one ?? undefined);
    if (shared && index + 1 < shared.length) await loading;
  }
  active = 0;
  panel();
}

start().catch((error: unknown) => {
  const words = error instanceof Refused ? error.trouble.message : String(error);
  tell({ message: `The engine could not be started: ${words}. A browser of 2023 or later is needed.`, text: "", file: "", line: 0, column: 0, key: "", help: [], memory: false });
});
