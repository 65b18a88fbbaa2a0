// Several workers that make the runs of one comparison. The engine that ranks says what it wants next, gets what they made, and
// makes itself what they could not.

import { Stopped, type WorkerEngine } from "./engine";
import type { Described, Progress } from "./types";

/** A run that is wanted. */
export interface Run { key: string; variant: string; seed: number }

/**
 * Runs that a step of a comparison wants, those that the step after it is likely to want, whether another step may follow, and the places
 * of queue mechanisms.
 */
export interface Missing { runs: Run[]; likely: Run[]; more: boolean; chosen: number[] }

/** What is asked of the engine that ranks. */
export interface Request { scenario: Described; only: string[]; seeds: number; budget: number; preview: boolean }

interface Task extends Run { scenario: Described; chosen: number[]; guessed: boolean; done: () => void; failed: (error: Error) => void }

interface Helper { engine: WorkerEngine; busy: boolean }

/** How the scenario as it stands is called among the variants. */
export const BASELINE = "as described";

/** So long (ms) a run may go on that is not wanted any more. */
const PATIENCE = 100;

export class Crew {
  private helpers: Helper[];
  private queue: Task[] = [];
  private asked = new Map<string, Promise<void>>();
  private useless = new Set<string>();
  private turn = 0;
  /** Hears where a run is that goes on for long. */
  private pulse: (progress: Progress) => void = () => undefined;
  /** Time (ms) that runs took, and their number. */
  private spent = 0;
  private made = 0;
  /** Time (ms) that the last run of each variant took. */
  private took = new Map<string, number>();
  private heard: (() => void)[] = [];

  constructor(private readonly ranker: WorkerEngine, make: () => WorkerEngine, count: number) {
    this.helpers = Array.from({ length: count }, () => ({ engine: make(), busy: false }));
  }

  /** How long a run takes (s), divided by how many are made at once; `null`: none was made. */
  get run_s(): number | null {
    return this.made ? this.spent / this.made / 1e3 / this.helpers.length : null;
  }

  /** As [`run_s`] once a run was made, or after `patience` (ms) without one. */
  async sample(patience: number): Promise<number | null> {
    if (!this.made) await new Promise<void>((done) => { this.heard.push(done); setTimeout(done, patience); });
    return this.run_s;
  }

  /** Begins with these runs, and those that are likely to be wanted after them, and does not wait for them. */
  begin({ runs, likely, chosen }: Missing, { scenario }: Request) {
    for (const run of runs) this.want(run, scenario, chosen, false).catch(() => undefined);
    for (const run of likely) this.want(run, scenario, chosen, true).catch(() => undefined);
  }

  /** Begins with what `request` wants in its next step. */
  async ahead(request: Request) {
    const turn = this.turn;
    const missing = await this.missing(request);
    if (turn === this.turn) this.begin(missing, request);
  }

  /** Makes all runs of `request`. */
  async prepare(request: Request, progress: (progress: Progress) => void): Promise<void> {
    this.pulse = progress;
    const turn = this.turn;
    for (;;) {
      const missing = await this.missing(request);
      if (turn !== this.turn) throw new Stopped();
      const wanted = missing.runs.filter((run) => !this.useless.has(run.key));
      this.forget(new Set([...missing.runs, ...missing.likely].map((run) => run.key)));
      if (!wanted.length) return;
      this.begin(missing, request);
      // Where nothing is known of the places of queue mechanisms, the first run of the baseline says something.
      let early = missing.more && !missing.likely.length;
      let done = 0;
      await Promise.all(wanted.map(async (run) => {
        await this.want(run, request.scenario, missing.chosen, false);
        done += 1;
        progress({ step: run.variant === BASELINE ? BASELINE : "variants", done, total: wanted.length });
        if (early && run.variant === BASELINE && done < wanted.length) {
          early = false;
          await this.ahead(request);
        }
      }));
      if (!missing.more) return;
    }
  }

  private missing(request: Request): Promise<Missing> {
    return this.ranker.ask<Missing>({ do: "missing", ...request });
  }

  /** Gives up runs that only a guess asked for, but those of these keys. */
  private forget(wanted: Set<string>) {
    const given = this.queue.filter((task) => task.guessed && !wanted.has(task.key));
    this.queue = this.queue.filter((task) => !given.includes(task));
    for (const task of given) {
      this.asked.delete(task.key);
      task.failed(new Stopped());
    }
  }

  /** Gives up what is asked. */
  stop() {
    this.turn += 1;
    const given = this.queue;
    this.queue = [];
    this.asked.clear();
    this.useless.clear();
    this.took.clear();
    this.spent = this.made = 0;
    for (const helper of this.helpers) {
      // A short run may be finished: beginning anew takes as long.
      if (helper.busy) helper.engine.stop(PATIENCE);
      helper.busy = false;
    }
    for (const task of given) task.failed(new Stopped());
  }

  private want(run: Run, scenario: Described, chosen: number[], guessed: boolean): Promise<void> {
    const before = this.asked.get(run.key);
    if (before) {
      if (!guessed) for (const task of this.queue) if (task.key === run.key) task.guessed = false;
      return before;
    }
    const made = new Promise<void>((done, failed) => this.queue.push({ ...run, scenario, chosen, guessed, done, failed }));
    this.asked.set(run.key, made);
    this.next();
    return made;
  }

  private next() {
    // Seed by seed, the longest run first, so that none goes on for long when the others are done; at first, while nothing is known, the baseline.
    const length = ({ variant }: Task) => this.took.get(variant) ?? (variant === BASELINE ? Number.MAX_VALUE : 0);
    this.queue.sort((one, other) => one.seed - other.seed || length(other) - length(one));
    for (const helper of this.helpers) {
      const task = helper.busy ? undefined : this.queue.shift();
      if (task) void this.make(helper, task);
    }
  }

  private async make(helper: Helper, task: Task) {
    const turn = this.turn;
    const { key, variant, seed, scenario, chosen } = task;
    const free = () => {
      if (turn !== this.turn) return;
      helper.busy = false;
      this.next();
    };
    helper.busy = true;
    try {
      const begin = performance.now();
      const { record } = await helper.engine.askForRecord({ do: "make", scenario, chosen, variant, seed, key }, (progress) => this.pulse(progress));
      if (turn === this.turn) {
        const took = performance.now() - begin;
        this.took.set(variant, took);
        this.spent += took;
        this.made += 1;
        for (const hear of this.heard.splice(0)) hear();
      }
      // The next one is made while this one is handed over.
      free();
      if (turn === this.turn) await this.ranker.ask({ do: "keep", key }, undefined, record);
    } catch (error) {
      free();
      // The engine that ranks makes it itself, and says what is wrong.
      if (turn === this.turn && !(error instanceof Stopped)) this.useless.add(key);
    }
    if (turn !== this.turn) return task.failed(new Stopped());
    task.done();
  }
}
