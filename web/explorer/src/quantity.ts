// Quantities with units as scenario files write them.

export interface Quantity { number: number; unit: string }

/** `50 Mbit/s` in its parts; `null`: it is none. */
export function quantity(text: string): Quantity | null {
  const found = /^\s*([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*(.*?)\s*$/i.exec(text);
  return found && found[2] ? { number: Number(found[1]), unit: found[2] } : null;
}

/** A number with three significant digits, without an exponent. */
export const short = (value: number): string => value >= 100 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));

const SECONDS: Record<string, number> = { s: 1, ms: 1e-3, us: 1e-6, ns: 1e-9, min: 60 };

/** A time (s); `null`: it is none. */
export function time(text: string): number | null {
  const parts = quantity(text);
  const unit = parts && SECONDS[parts.unit];
  return parts && unit ? parts.number * unit : null;
}
