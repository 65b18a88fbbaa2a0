// Several workers that make the runs of one comparison. The engine that ranks says what it wants next, gets what they made, and
// makes itself what they could not.

import { Stopped, type WorkerEngine } from "./engine";
import type { Progress } from "./types";

/** A run that is wanted. */
interface Run { key: string; variant: string; seed: number }

/** Runs that a step of a comparison wants, and whether another step may follow. */
interface Wanted { runs: Run[]; more: boolean }

interface Task extends Run { of: object; done: () => void; failed: (error: Error) => void }

interface Helper { engine: WorkerEngine; busy: boolean; has: Set<string> }

const BASELINE = "as described";

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
  /** The variant whose runs are made first: the one that the reader looks at. */
  first = "";

  constructor(private readonly ranker: WorkerEngine, make: () => WorkerEngine, count: number) {
    this.helpers = Array.from({ length: count }, () => ({ engine: make(), busy: false, has: new Set<string>() }));
  }

  /** Makes what `request` wants in its next step, and does not wait for it; `false`: it wants nothing. */
  async ahead(request: object): Promise<boolean> {
    const { runs, more } = await this.ranker.ask<Wanted>({ do: "missing", ...request });
    for (const run of runs) this.want(run, request).catch(() => undefined);
    return runs.length > 0 || more;
  }

  /** Makes all runs of `request`. */
  async prepare(request: object, progress: (progress: Progress) => void): Promise<void> {
    this.pulse = progress;
    for (;;) {
      const { runs, more } = await this.ranker.ask<Wanted>({ do: "missing", ...request });
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
    // Seed by seed, so that soon there is an answer with few seeds; the baseline first, then what is looked at.
    const rank = (task: Task) => (task.variant === BASELINE ? 0 : task.variant === this.first ? 1 : 2);
    this.queue.sort((one, other) => one.seed - other.seed || rank(one) - rank(other));
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
      const { record } = await helper.engine.askForRecord({ do: "make", of, variant, seed, key }, (progress) => this.pulse(progress));
      if (turn !== this.turn) return;
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
