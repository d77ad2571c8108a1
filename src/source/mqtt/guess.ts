// From a topic and one of its payloads to tags, as a person would write them. Pure.
import type { EpochMicros } from "../../core/point.ts";
import type { BrowsedNode } from "../../core/source.ts";
import { bareValue } from "./decoders/bare.ts";
import { jsonDocument } from "./decoders/json.ts";
import { PayloadError } from "./payload-error.ts";
import { payloadTime } from "./payload-time.ts";

type Scalar = number | bigint | boolean | string;

interface Leaf {
  readonly path: string;
  readonly names: readonly string[];
  readonly value: Scalar;
}

/** Values of one payload that are listed at most, and levels that are looked into. */
const maxLeaves = 200;
const maxDepth = 8;
const timeName = /^(?:ts|t|time|timestamp|timestamp_ms|last_seen|datetime|received_at|sampled_at)$/i;

/** One node for each value in the payload; none where it can be read in no way. */
export function guessTags(topic: string, payload: Buffer, now: EpochMicros): readonly BrowsedNode[] {
  const levels = topic.split("/");
  const node = (names: readonly string[], value: Scalar, tag: object): BrowsedNode => ({
    address: topic,
    name: names.at(-1) ?? levels.at(-1) ?? topic,
    depth: levels.length - 1 + names.length,
    value,
    signal: {},
    tag: { input: inputOf([...levels, ...names]), topic, ...tag },
  });
  try {
    const document = documentOf(payload);
    if (document === undefined) return [node([], bareValue(payload), {})];
    const leaves = leavesOf(document);
    const time = leaves.find(
      ({ names, value }) =>
        timeName.test(names.at(-1) ?? "") && typeof payloadTime(value, "auto", undefined, now) === "number",
    );
    return leaves
      .filter((leaf) => leaf !== time)
      .map(({ path, names, value }) => node(names, value, { value: path, ...(time && { time: { at: time.path } }) }));
  } catch (error) {
    if (error instanceof PayloadError) return [];
    throw error;
  }
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

function leavesOf(document: object): readonly Leaf[] {
  const leaves: Leaf[] = [];
  const walk = (parent: object, path: string, names: readonly string[]) => {
    for (const [name, value] of Object.entries(parent)) {
      if (leaves.length >= maxLeaves) return;
      const at = path + stepTo(name, Array.isArray(parent));
      const inner = [...names, name];
      const found: unknown = value;
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

function inputOf(parts: readonly string[]): string {
  return parts
    .map((part) => part.replaceAll(/[^A-Za-z0-9\-_:#+]+/g, "_"))
    .join(".")
    .slice(-128);
}
