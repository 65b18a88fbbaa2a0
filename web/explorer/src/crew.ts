// Several workers that make the runs of one comparison. The engine that ranks says what it wants next, gets what they made, and
// makes itself what they could not.

import { Stopped, type WorkerEngine } from "./engine";
import type { Progress } from "./types";

/** A run that is wanted. */
export interface Run { key: string; variant: string; seed: number }

/** Runs that a step of a comparison wants, and whether another step may follow. */
export interface Missing { runs: Run[]; more: boolean }

interface Task extends Run { of: object; done: () => void; failed: (error: Error) => void }

interface Helper { engine: WorkerEngine; busy: boolean; has: Set<string> }

/** How the scenario as it stands is called among the variants. */
export const BASELINE = "as described";

export class Crew {
  private helpers: Helper[];
  private queue: Task[] = [];
  private asked = new Map<string, Promise<void>>();
  /** Runs of the baseline, which others follow from. */
  private described = new Map<string, Uint8Array<ArrayBuffer>>();
  private useless = new Set<string>();
  private turn = 0;
  /** Hears where a run is that goes on for long. */
  private pulse: (progress: Progress) => void = () => undefined;
  /** Time (ms) that runs took, and their number. */
  private spent = 0;
  private made = 0;

  constructor(private readonly ranker: WorkerEngine, make: () => WorkerEngine, count: number) {
    this.helpers = Array.from({ length: count }, () => ({ engine: make(), busy: false, has: new Set<string>() }));
  }

  /** How long a run takes (s), divided by how many are made at once; `null`: none was made. */
  get run_s(): number | null {
    return this.made ? this.spent / this.made / 1e3 / this.helpers.length : null;
  }

  /** Begins with these runs of `request`, and does not wait for them. */
  begin(runs: Run[], request: object) {
    for (const run of runs) this.want(run, request).catch(() => undefined);
  }

  /** Begins with what `request` wants in its next step. */
  async ahead(request: object) {
    this.begin((await this.ranker.ask<Missing>({ do: "missing", ...request })).runs, request);
  }

  /** Makes all runs of `request`. */
  async prepare(request: object, progress: (progress: Progress) => void): Promise<void> {
    this.pulse = progress;
    for (;;) {
      const { runs, more } = await this.ranker.ask<Missing>({ do: "missing", ...request });
      const wanted = runs.filter((run) => !this.useless.has(run.key));
      if (!wanted.length) return;
      let done = 0;
      await Promise.all(wanted.map(async (run) => {
        await this.want(run, request);
        done += 1;
        progress({ step: run.variant === BASELINE ? BASELINE : "variants", done, total: wanted.length });
      }));
      if (!more) return;
    }
  }

  /** Gives up what is asked. */
  stop() {
    this.turn += 1;
    const given = this.queue;
    this.queue = [];
    this.asked.clear();
    this.useless.clear();
    this.described.clear();
    this.spent = this.made = 0;
    for (const helper of this.helpers) {
      // What is idle keeps its runs.
      if (helper.busy) {
        helper.engine.stop();
        helper.has.clear();
      }
      helper.busy = false;
    }
    for (const task of given) task.failed(new Stopped());
  }

  private want(run: Run, of: object): Promise<void> {
    const before = this.asked.get(run.key);
    if (before) return before;
    const made = new Promise<void>((done, failed) => this.queue.push({ ...run, of, done, failed }));
    this.asked.set(run.key, made);
    this.next();
    return made;
  }

  private next() {
    // Seed by seed, the baseline first.
    const late = (task: Task) => Number(task.variant !== BASELINE);
    this.queue.sort((one, other) => one.seed - other.seed || late(one) - late(other));
    for (const helper of this.helpers) {
      const task = helper.busy ? undefined : this.queue.shift();
      if (task) void this.make(helper, task);
    }
  }

  private async make(helper: Helper, task: Task) {
    const turn = this.turn;
    helper.busy = true;
    try {
      if (task.variant !== BASELINE) {
        for (const [key, record] of this.described) {
          if (helper.has.has(key)) continue;
          helper.has.add(key);
          void helper.engine.ask({ do: "keep", key }, undefined, record).catch(() => undefined);
        }
      }
      const { key, variant, seed, of } = task;
      const begin = performance.now();
      const { record } = await helper.engine.askForRecord({ do: "make", of, variant, seed, key }, (progress) => this.pulse(progress));
      if (turn !== this.turn) return;
      this.spent += performance.now() - begin;
      this.made += 1;
      if (variant === BASELINE) {
        this.described.set(key, record);
        helper.has.add(key);
      }
      await this.ranker.ask({ do: "keep", key }, undefined, record);
    } catch (error) {
      if (turn !== this.turn || error instanceof Stopped) return task.failed(new Stopped());
      // The engine that ranks makes it itself, and says what is wrong.
      this.useless.add(task.key);
    } finally {
      if (turn === this.turn) {
        helper.busy = false;
        this.next();
      }
    }
    if (turn !== this.turn) return task.failed(new Stopped());
    task.done();
  }
}
