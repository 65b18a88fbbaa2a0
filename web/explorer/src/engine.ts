// The engine: in a worker of the page, or the program behind `fleetfoot serve`.

import type { Progress, Trouble } from "./types";

/** The engine refused a request. */
export class Refused extends Error {
  constructor(readonly trouble: Trouble) { super(trouble.message); }
}

/** A request was given up. */
export class Stopped extends Error {}

export interface Engine {
  /** Asks; several requests wait for each other. `attached` are the bytes of a capture. */
  ask<T>(request: object, progress?: (progress: Progress) => void, attached?: Uint8Array<ArrayBuffer>): Promise<T>;
  /** Gives up what is asked. What is worked on may still be finished within `patience` (ms), so that the engine need not begin anew. */
  stop(patience?: number): void;
}

const failed = (message: string): Refused => new Refused({ message, text: message, file: "", line: 0, column: 0, key: "", help: [], memory: true });

// --- in a worker ---------------------------------------------------------------------------------------------------

// The worker, as text: it is made of a Blob, so that the page works from a file.
const WORKER = `
let wasm;
const decoder = new TextDecoder(), encoder = new TextEncoder();
const text = (place, length) => decoder.decode(new Uint8Array(wasm.memory.buffer, place, length));
onmessage = async ({ data }) => {
  if (data.module) {
    const imports = { fleetfoot: { now: () => performance.now() / 1e3, progress: (place, length) => postMessage({ progress: text(place, length) }) } };
    const made = await WebAssembly.instantiate(data.module, imports);
    wasm = (made.instance ?? made).exports;
    postMessage({ ready: true });
    return;
  }
  try {
    const request = encoder.encode(data.request + "\\n");
    const size = request.length + (data.attached?.length ?? 0);
    const place = wasm.reserve(size);
    new Uint8Array(wasm.memory.buffer, place, request.length).set(request);
    if (data.attached) new Uint8Array(wasm.memory.buffer, place + request.length, data.attached.length).set(data.attached);
    const answer = wasm.call(place, size);
    wasm.release(place, size);
    const at = Number(answer & 0xffffffffn), length = Number(answer >> 32n);
    const all = new Uint8Array(wasm.memory.buffer, at, length);
    const line = all.indexOf(10);
    const told = decoder.decode(all.subarray(0, line)), record = all.slice(line + 1);
    wasm.release(at, length);
    postMessage({ answer: told, record }, [record.buffer]);
  } catch (error) {
    postMessage({ broken: String(error) });
  }
};`;

/** The engine of the page as bytes: base64 of a gzip file. */
export async function unpacked(packed: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

interface Answered { answer: string; record: Uint8Array<ArrayBuffer> }

interface Task { request: string; attached?: Uint8Array<ArrayBuffer>; progress?: (progress: Progress) => void; done: (answered: Answered) => void; failed: (error: Error) => void }

export class WorkerEngine implements Engine {
  private worker: Worker | null = null;
  private ready = false;
  private tasks: Task[] = [];
  private busy: Task | null = null;
  private static place = "";

  constructor(private readonly module: WebAssembly.Module) { this.start(); }

  private start() {
    WorkerEngine.place ||= URL.createObjectURL(new Blob([WORKER], { type: "text/javascript" }));
    this.ready = false;
    const worker = new Worker(WorkerEngine.place);
    this.worker = worker;
    worker.onmessage = ({ data }) => {
      if (worker !== this.worker) return;
      if (data.ready) this.ready = true;
      else if (data.progress) return this.busy?.progress?.(JSON.parse(data.progress));
      else if (data.answer) this.finish((task) => task.done(data));
      else if (data.broken) {
        // Its memory is in no known state: a new one takes its place.
        const why = /memory|unreachable|out of bounds/i.test(data.broken) ? "the engine in this page failed, most likely for want of memory: take a shorter duration or fewer users, or use the program" : data.broken;
        this.finish((task) => task.failed(failed(why)));
        this.restart();
      }
      this.next();
    };
    worker.onerror = (event) => { this.finish((task) => task.failed(failed(event.message || "the engine could not be started"))); };
    worker.postMessage({ module: this.module });
  }

  private finish(how: (task: Task) => void) {
    const task = this.busy;
    this.busy = null;
    if (task) how(task);
  }

  private restart() {
    this.worker?.terminate();
    this.start();
  }

  private next() {
    if (!this.ready || this.busy) return;
    this.busy = this.tasks.shift() ?? null;
    if (this.busy) this.worker?.postMessage({ request: this.busy.request, attached: this.busy.attached });
  }

  async ask<T>(request: object, progress?: (progress: Progress) => void, attached?: Uint8Array<ArrayBuffer>): Promise<T> {
    const { answer } = await this.answered(request, progress, attached);
    return answerOf<T>(answer, () => this.restart());
  }

  /** Asks for a run, whose record comes with the answer. */
  async askForRecord(request: object, progress: (progress: Progress) => void): Promise<{ record: Uint8Array<ArrayBuffer> }> {
    const { answer, record } = await this.answered(request, progress);
    answerOf(answer, () => this.restart());
    return { record };
  }

  private answered(request: object, progress?: (progress: Progress) => void, attached?: Uint8Array<ArrayBuffer>): Promise<Answered> {
    return new Promise((done, failed) => {
      this.tasks.push({ request: JSON.stringify(request), attached, progress, done, failed });
      this.next();
    });
  }

  stop(patience = 0) {
    const given = [this.busy, ...this.tasks];
    this.tasks = [];
    if (this.busy) {
      // Nobody waits for its answer any more.
      const left: Task = { request: "", done: () => undefined, failed: () => undefined };
      this.busy = left;
      const end = () => {
        if (this.busy !== left) return;
        this.busy = null;
        this.restart();
      };
      if (patience > 0) setTimeout(end, patience);
      else end();
    }
    for (const task of given) task?.failed(new Stopped());
  }
}

function answerOf<T>(text: string, renew: () => void): T {
  const told = JSON.parse(text) as { answer?: T; error?: Trouble };
  if (told.error) {
    if (told.error.memory) renew();
    throw new Refused(told.error);
  }
  return told.answer as T;
}

// --- the program ---------------------------------------------------------------------------------------------------

export class ServerEngine implements Engine {
  private running = new Set<AbortController>();

  async ask<T>(request: object, progress?: (progress: Progress) => void, attached?: Uint8Array<ArrayBuffer>): Promise<T> {
    const control = new AbortController();
    this.running.add(control);
    try {
      const response = await fetch("api/call", { method: "POST", headers: { "content-type": "application/json" }, body: new Blob([JSON.stringify(request), "\n", ...(attached ? [attached] : [])]), signal: control.signal });
      if (!response.ok || !response.body) throw failed(`the program answered ${response.status}: ${await response.text()}`);
      let rest = "";
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        const lines = (rest + (value ?? "")).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          const told = JSON.parse(line);
          if (told.progress) progress?.(told.progress);
          else return answerOf<T>(line, () => undefined);
        }
        if (done) throw failed("the program ended before it answered");
      }
    } catch (error) {
      if (control.signal.aborted) throw new Stopped();
      if (error instanceof TypeError) throw failed("the program does not answer: is `fleetfoot serve` still running?");
      throw error;
    } finally {
      this.running.delete(control);
    }
  }

  stop() {
    for (const control of this.running) control.abort();
    this.running.clear();
  }
}
