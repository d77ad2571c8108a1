// From a topic and one of its payloads to tags, as a person would write them. Pure.
import type { EpochMicros } from "../../../core/point.ts";
import type { BrowsedNode } from "../../../core/source.ts";
import { bareValue } from "../decoders/bare.ts";
import { cborDocument } from "../decoders/cbor.ts";
import { decompress } from "../decoders/compression.ts";
import { jsonDocument } from "../decoders/json.ts";
import { messagePackDocument } from "../decoders/message-pack.ts";
import { PayloadError } from "../decoders/payload-error.ts";
import { guessFormat, isTime, timeName } from "./guess-format.ts";
import { namedList, sampleBlock } from "./guess-list.ts";

type Scalar = number | bigint | boolean | string;

interface Leaf {
  readonly path: string;
  readonly names: readonly string[];
  readonly value: Scalar;
  /** Fields of the tag beside `value`. */
  readonly more?: object;
}

/** Values of one payload that are listed at most, and levels that are looked into. */
const maxLeaves = 200;
const maxDepth = 8;
/** Bytes that a compressed payload may have when it is inflated. */
const maxInflated = 1_048_576;
/** Bytes of one that is no text that are shown. */
const shownBytes = 32;

/** One node for each value in the payload; one with its bytes as text where it can be read in no way. */
export function guessTags(topic: string, sent: Buffer, now: EpochMicros): readonly BrowsedNode[] {
  const payload = inflated(sent);
  const compression = payload !== sent && { compression: "auto" };
  const levels = topic.split("/");
  // Braces would capture.
  const filter = levels.map((level) => (/[{}]/.test(level) ? "+" : level)).join("/");
  const node = (names: readonly string[], value: Scalar, tag: object): BrowsedNode => ({
    address: topic,
    name: names.at(-1) ?? levels.at(-1) ?? topic,
    depth: levels.length - 1 + names.length,
    value,
    signal: {},
    tag: { input: inputOf(levels, names), topic: filter, ...compression, ...tag },
  });
  const leafNodes = (document: object, own: object) => {
    const leaves = leavesOf(document, now);
    const time = leaves.find(({ names, value }) => timeName.test(names.at(-1) ?? "") && isTime(value, now));
    const timed = { ...own, ...(time && { time: { at: time.path } }) };
    return leaves
      .filter((leaf) => leaf !== time)
      .map(({ path, names, value, more }) => node(names, value, { value: path, ...timed, ...more }));
  };
  try {
    const document = documentOf(payload);
    const bare = document === undefined ? bareValue(payload) : undefined;
    const found = typeof bare === "number" || typeof bare === "boolean" ? [] : guessFormat(payload, now);
    if (found.length > 0) return found.map(({ names, value, tag }) => node(names, value, tag));
    if (document === undefined) return bare === undefined ? [] : [node([], bare, {})];
    return leafNodes(document, {});
  } catch (error) {
    if (!(error instanceof PayloadError)) throw error;
    const binary = binaryDocument(payload);
    if (binary) return leafNodes(binary.document, { format: binary.format });
    // Somebody has to say where in the bytes which number stands.
    return [node([], hexadecimal(payload), { format: "binary", bytes: { at: 0, type: "u8", length: payload.length } })];
  }
}

/** A map, which in both formats is not to be mistaken for anything else. */
function binaryDocument(payload: Buffer): { readonly format: string; readonly document: object } | undefined {
  for (const [format, decode] of [
    ["cbor", cborDocument],
    ["msgpack", messagePackDocument],
  ] as const) {
    try {
      const document = decode(payload);
      const isMap = typeof document === "object" && document !== null && !Array.isArray(document);
      if (isMap && !(document instanceof Uint8Array)) return { format, document };
    } catch (error) {
      if (!(error instanceof PayloadError)) throw error;
    }
  }
  return undefined;
}

/** As it was before it was compressed, if it was and if all of it is here. */
function inflated(payload: Buffer): Buffer {
  try {
    return decompress(payload, "auto", maxInflated);
  } catch (error) {
    if (error instanceof PayloadError) return payload;
    throw error;
  }
}

function hexadecimal(payload: Buffer): string {
  const digits = payload.subarray(0, shownBytes).toString("hex").toUpperCase();
  return `bytes ${digits}${payload.length > shownBytes ? "…" : ""}`;
}

/** Undefined: it is no JSON object or array. */
function documentOf(payload: Buffer): object | undefined {
  try {
    const document = jsonDocument(payload);
    return typeof document === "object" && document !== null ? document : undefined;
  } catch (error) {
    if (error instanceof PayloadError) return undefined;
    throw error;
  }
}

function leavesOf(document: object, now: EpochMicros): readonly Leaf[] {
  const leaves: Leaf[] = [];
  const walk = (parent: object, path: string, names: readonly string[]) => {
    const list = Array.isArray(parent) ? namedList(parent, now) : undefined;
    if (list) {
      const { key, time, values } = list;
      const at = `${path}[*]`;
      const more = { capture: { [key]: `${at}.${key}` }, ...(time !== undefined && { time: { at: `${at}.${time}` } }) };
      for (const [name, value] of values)
        leaves.push({
          path: `${at}.${name}`,
          names: [...names, `{${key}}`, ...(values.length > 1 ? [name] : [])],
          value,
          more,
        });
      return;
    }
    for (const [name, value] of Object.entries(parent)) {
      if (leaves.length >= maxLeaves) return;
      const at = path + stepTo(name, Array.isArray(parent));
      const inner = [...names, name];
      const found: unknown = value;
      if (found instanceof Uint8Array) continue;
      const block = sampleBlock(found, parent, now);
      if (block && Array.isArray(found)) {
        const time = { at: `${path}.${block.start}`, step: { at: `${path}.${block.step}`, unit: block.unit } };
        leaves.push({ path: `${at}[*]`, names: inner, value: Number(found[0]), more: { each: "sample", time } });
        continue;
      }
      if (typeof found === "object" && found !== null) {
        if (inner.length < maxDepth) walk(found, at, inner);
      } else if (isScalar(found)) leaves.push({ path: at, names: inner, value: found });
    }
  };
  walk(document, "$", []);
  return leaves;
}

function isScalar(value: unknown): value is Scalar {
  return value !== null && value !== undefined && typeof value !== "object";
}

function stepTo(name: string, index: boolean): string {
  if (index) return `[${name}]`;
  return /^[A-Za-z_][\w-]*$/.test(name) ? `.${name}` : `['${name.replaceAll(/['\\]/g, String.raw`\$&`)}']`;
}

/** `names` in braces are filled from the payload. */
function inputOf(levels: readonly string[], names: readonly string[]): string {
  const plain = (part: string) => part.replaceAll(/[^A-Za-z0-9\-_:#+]+/g, "_");
  const filled = names.map((name) => (/^\{\w+\}$/.test(name) ? name : plain(name)));
  return [...levels.map(plain), ...filled].join(".").slice(-128);
}
