// In which steps a comparison is shown: one variant with all seeds first, then the others beside it.

/** A step: these variants with so many seeds; without `preview` all that the program's comparison does. */
export interface Look { only: string[]; seeds: number; preview: boolean }

/** What a step may take (s) before it is divided. */
const SHORT = 1.5;

/** Seeds of the steps before all seeds of the first variant, where those take longer. */
const FEW = [1, 3];

/**
 * The steps of a comparison of `chosen` with `seeds` seeds, of which `missing` are still to be run, the first one before the others. With
 * `baseline` that is to be run too. `run_s` is how long a run takes (s), divided by how many are made at once.
 */
export function looksOf(chosen: string[], missing: string[], baseline: boolean, seeds: number, run_s: number): Look[] {
  const last: Look = { only: chosen, seeds, preview: false };
  const takes = (variants: number, seeds: number) => (variants + Number(baseline)) * seeds * run_s;
  // Nothing to run, or all of it soon, what follows the first pass included.
  if (takes(missing.length, seeds) * 2 <= SHORT / 2) return [last];
  const looks: Look[] = [];
  const shown = (count: number) => chosen.filter((name) => missing.indexOf(name) < count);
  // What is known is shown with all its seeds.
  if (baseline && takes(1, seeds) > SHORT) for (const few of FEW) if (few < seeds) looks.push({ only: shown(1), seeds: few, preview: true });
  for (let count = 1; count < missing.length; count = takes(missing.length - count, seeds) > 2 * SHORT ? 2 * count + 1 : missing.length) {
    looks.push({ only: shown(count), seeds, preview: true });
  }
  looks.push({ ...last, preview: true }, last);
  return looks;
}
