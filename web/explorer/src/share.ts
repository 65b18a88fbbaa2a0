// The setting in the fragment of the page's address, compressed.

export interface Shared { name: string; toml?: string; set: string[]; only: string[] | null; load?: number }

const base64 = (bytes: Uint8Array) => btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

async function through(bytes: BlobPart, stream: GenericTransformStream): Promise<Uint8Array> {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>)).arrayBuffer());
}

/** The fragment of these settings. */
export async function packed(sides: Shared[]): Promise<string> {
  const bytes = await through(JSON.stringify(sides), new CompressionStream("deflate-raw"));
  return `#1.${base64(bytes)}`;
}

/** The longest fragment that is read. */
const LONGEST = 400_000;

/** The settings of a fragment; `null`: there are none, or it is damaged. */
export async function opened(fragment: string): Promise<Shared[] | null> {
  if (!fragment.startsWith("#1.") || fragment.length > LONGEST) return null;
  try {
    const text = fragment.slice(3).replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const sides = JSON.parse(new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw"))));
    const words = (list: unknown) => Array.isArray(list) && list.every((one) => typeof one === "string");
    const valid = Array.isArray(sides) && sides.length > 0 && sides.length <= 2 && sides.every((side) =>
      typeof side.name === "string" && words(side.set) && (side.only === null || words(side.only)) && (side.toml === undefined || typeof side.toml === "string"));
    return valid ? sides : null;
  } catch {
    return null;
  }
}
