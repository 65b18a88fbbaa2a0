// What the engine answers; see crates/web.

/** A file that a scenario names. */
export interface Beside { name: string; text: string }

/** A scenario file, the files that it names if they came with it, and what is known of where they are from. */
export interface Opened { name: string; toml: string; files?: Beside[]; about?: string }

/** A scenario and what is changed in it. */
export interface Described { name: string; toml: string; files?: Beside[]; set: string[] }

/** The scenario of a capture, and what the program says of it. */
export interface Imported { name: string; toml: string; files: Beside[]; summary: string; fit: string | null; damage: string | null }

/** A value that can be moved. */
export interface Control {
  kind: "rate" | "rtt" | "limit" | "load";
  label: string;
  path: string;
  value: string;
  /** Base RTT (s) with this value, and how many ways the delay counts. */
  rtt_s?: number;
  ways?: number;
  /** Of the load: what it scales. */
  values?: { path: string; value: string | number }[];
}

export interface Checked {
  title: string;
  toml: string;
  own: string[];
  variants: string[];
  inapplicable: { name: string; reason: string }[];
  controls: Control[];
  groups: { name: string; kind: string; waits: boolean }[];
  waits: boolean;
  base_rtt_s: number | null;
  seeds: number;
  duration_s: number;
}

export interface Mechanism { name: string; family: string; document: string; source: string; turn_on: string }
export interface Hello { fleetfoot: string; commit: string; examples: { name: string; text: string }[]; mechanisms: Mechanism[]; most_text: number; most_capture: number }
export interface Estimate { runs: number; variants: number; seconds: number | null }

export interface Row {
  tier: string; name: string; mark: string; part: boolean; saved: string; bar: number; sign: string; by_group: string[];
  harm: string; goodput: string; worst_tail: string; significant: string; class: string; places: string; remarks: string[];
}
export interface Step { heading: string; commands: string[]; why: string; needs: string; afterwards: string | null }
export interface Chart {
  id: string; title: string; text: string; header: string[]; rows: string[][];
  pictures: { group: string; wide: string; narrow: string }[];
  key?: [number, string, string, string, boolean][] | null;
}
export interface Page {
  top: { headline: string; rest: string; facts: { what: string; value: string; number: boolean; beside: string[] }[]; notes: string[]; more_notes: string[] };
  described: string[];
  turn_on: { first: { name: string; set: string[]; instructions: Step[] } | null };
  ranking: { headings: string[]; first: Row[]; rest: Row[]; legend: string; not_tried: string[] };
  pareto: { text: string; wide: string; narrow: string } | null;
  charts: Chart[];
  seeds: string;
}
/** Only the last step of a comparison has the document as text. `chosen` are the places of queue mechanisms. */
export interface Compared { json: string | null; command: string; page: Page; computed: number; chosen: number[] }

export interface Wait { name: string; direction: string; label: string | null; bin_s: number; mean_s: (number | null)[]; most_s: (number | null)[]; dropped: number[] }
export interface Arrow { sent_s: number; arrived_s: number | null; dropped_s: number | null; back: boolean; what: string; label: string }
export interface Diagram { begin_s: number; segments: number; arrows: Arrow[]; timers: { at_s: number; what: string }[] }
export interface Connection { number: number; start_s: number; span_s: number; segments: number; lost: number }
export interface Traced { waits: Wait[]; groups: string[]; group?: string; number?: number; connections: Connection[]; diagram: Diagram | null }

/** Progress of a comparison. */
export interface Progress { step?: string; done?: number; total?: number; unit?: string; variant?: string; seed?: number; at_s?: number; end_s?: number }

/** The program's message, and its place. */
export interface Trouble { message: string; text: string; file: string; line: number; column: number; key: string; help: string[]; memory: boolean }
