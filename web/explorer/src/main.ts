// The page: it puts the controls and one or two settings together.

import "./explorer.css";
import { Choice, Controls, firstChoice } from "./controls";
import { Refused, ServerEngine, unpacked, WorkerEngine, type Engine } from "./engine";
import { byId, h } from "./page";
import { say } from "./results";
import { opened, packed, type Shared } from "./share";
import { Side } from "./side";
import type { Hello, Trouble } from "./types";

/** The longest file that is read (bytes). */
const LONGEST = 1 << 20;

/** After the last change, so long (ms) until the comparison begins. */
const PAUSE = 100;

const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
byId("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  root.dataset.theme = dark ? "light" : "dark";
});

const source = document.getElementById("engine")?.textContent?.trim() ?? "";
let makeEngine: () => Engine = () => new ServerEngine();

let hello: Hello;
const sides: Side[] = [];
let active = 0;
let pending: ReturnType<typeof setTimeout> | undefined;

const message = byId("message");
const text = byId<HTMLTextAreaElement>("text");
const examples = byId<HTMLSelectElement>("example");
const controls = new Controls(() => changed());
const choice = new Choice(() => changed());
byId("controls").append(controls.element);
byId("mechanisms").append(choice.element);

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

function changed() {
  clearTimeout(pending);
  pending = setTimeout(() => { void sides[active].run(); void remember(); }, PAUSE);
}

async function remember() {
  const shared: Shared[] = sides.map((side) => {
    const example = hello.examples.find((one) => `${one.name}.toml` === side.file.name && one.text === side.file.toml);
    return { name: side.file.name, ...(example ? {} : { toml: side.file.toml }), set: [...side.moved.set].map(([path, value]) => `${path}=${value}`), only: [...side.chosen], load: side.moved.load };
  });
  history.replaceState(null, "", await packed(shared));
}

/** Reads a file into the active setting and compares. */
async function load(name: string, toml: string, shared?: Shared) {
  const side = sides[active];
  clearTimeout(pending);
  side.file = { name, toml };
  side.moved = { set: new Map(), load: 1 };
  for (const set of shared?.set ?? []) {
    const at = set.indexOf("=");
    if (at > 0) side.moved.set.set(set.slice(0, at), set.slice(at + 1));
  }
  if (shared?.load && shared.load > 0) side.moved.load = shared.load;
  text.value = toml;
  const checked = await side.check();
  if (!checked) return;
  tell(null);
  side.chosen = new Set(shared?.only ?? firstChoice(checked));
  panel();
  await Promise.all([side.run(), remember()]);
}

/** Shows the controls of the active setting. */
function panel() {
  const side = sides[active];
  text.value = side.file.toml;
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
  const side: Side = new Side(makeEngine(), makeEngine(), title, (trouble) => { if (sides[active] === side) tell(trouble); });
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
  await load(first.file.name, first.file.toml, { name: first.file.name, set: [...first.moved.set].map(([path, value]) => `${path}=${value}`), only: [...first.chosen], load: first.moved.load });
  panel();
  other.element.scrollIntoView({ block: "nearest" });
}

async function readFile(file: File) {
  const capture = /\.(pcap|pcapng|cap)(\.gz|\.zst)?$/i.test(file.name);
  const size = `${(file.size / 1e6).toFixed(1)} MB`;
  const refuse = (words: string) => tell({ message: words, text: words, file: file.name, line: 0, column: 0, key: "", help: [], memory: false });
  if (capture) return refuse(`${file.name} (${size}) is a capture: make a scenario of it with \`fleetfoot import ${file.name}\`, and open that here`);
  if (file.size > LONGEST) return refuse(`${file.name} has ${size}; a scenario file of more than 1 MB is not read here`);
  await load(file.name, await file.text());
}

async function start() {
  // On a phone the answer comes first.
  if (matchMedia("(max-width: 60rem)").matches) byId<HTMLDetailsElement>("knobs").open = false;
  if (source) {
    const module = await WebAssembly.compile(await unpacked(source));
    makeEngine = () => new WorkerEngine(module);
  }
  addSide("A");
  const engine = makeEngine();
  hello = await engine.ask<Hello>({ do: "hello" });
  byId("version").textContent = `Fleetfoot ${hello.fleetfoot}${hello.commit ? ` (${hello.commit})` : ""}, ${source ? "running in this page" : "running in the program"}`;
  examples.replaceChildren(h("option", { value: "" }, "a file of mine"), ...hello.examples.map((one) => h("option", { value: one.name }, one.name.replaceAll("-", " "))));
  examples.addEventListener("change", () => {
    const example = hello.examples.find((one) => one.name === examples.value);
    if (example) void load(`${example.name}.toml`, example.text);
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
  byId("apply").addEventListener("click", () => void load(sides[active].file.name, text.value));
  byId("reset").addEventListener("click", () => void load(sides[active].file.name, sides[active].file.toml));
  byId("second").addEventListener("click", () => void second());
  byId("share").addEventListener("click", async () => {
    await remember();
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    say(copied ? "The link is copied" : "The link stands in the address bar");
    byId("share").textContent = copied ? "Link copied" : "Link is in the address bar";
    setTimeout(() => { byId("share").textContent = "Copy link"; }, 2500);
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
    const loading = load(begin.name, begin.toml, one ?? undefined);
    if (shared && index + 1 < shared.length) await loading;
  }
  active = 0;
  panel();
}

start().catch((error: unknown) => {
  const words = error instanceof Refused ? error.trouble.message : String(error);
  tell({ message: `The engine could not be started: ${words}. A browser of 2023 or later is needed.`, text: "", file: "", line: 0, column: 0, key: "", help: [], memory: false });
});
