// Proposes tags for a topic from one of its payloads.

import type { BrowsedNode } from "../../../core/commissioning.ts";
import type { EpochMicros } from "../../../core/point.ts";
import { parseDecimal } from "../../../lib/values/decimal-text.ts";
import { cborDocument, messagePackDocument } from "../decoders/binary-documents.ts";
import {
  bareValue,
  decompress,
  ifReadable,
  isScalar,
  jsonDocument,
  jsonLines,
  numberDecoder,
  PayloadError,
  type Scalar,
  utf8,
} from "../decoders/payload.ts";
import { payloadTime } from "../decoders/payload-time.ts";
import { csvDecoder, lineProtocolRecords, senmlRecords } from "../decoders/records.ts";

interface Leaf {
  readonly path: string;
  readonly names: readonly string[];
  readonly value: Scalar;
  readonly more?: object;
}

/** Limits for one payload: listed values and nesting depth. */
const maxLeaves = 200;
const maxDepth = 8;
const maxInflated = 1_048_576;
const shownBytes = 32;

/** One node per value in the payload; if no format matches, one node that shows its bytes. */
export function guessTags(topic: string, sent: Buffer, now: EpochMicros): readonly BrowsedNode[] {
  // The decompressed payload, if it was compressed and is complete.
  const payload = ifReadable(() => decompress(sent, "auto", maxInflated)) ?? sent;
  const compression = payload !== sent && { compression: "auto" };
  const levels = topic.split("/");
  // Braces in a topic would be read as captures.
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
    const json = ifReadable(() => jsonDocument(payload));
    const document = typeof json === "object" && json !== null ? json : undefined;
    const bare = document === undefined ? bareValue(payload) : undefined;
    const found = typeof bare === "number" || typeof bare === "boolean" ? [] : guessFormat(payload, now);
    if (found.length > 0) return found.map(({ names, value, tag }) => node(names, value, tag));
    if (document === undefined) return bare === undefined ? [] : [node([], bare, {})];
    return leafNodes(document, {});
  } catch (error) {
    if (!(error instanceof PayloadError)) throw error;
    const binary = binaryDocument(payload);
    if (binary) return leafNodes(binary.document, { format: binary.format });
    // A person must specify the position of numbers in the bytes.
    return [node([], hexadecimal(payload), { format: "binary", bytes: { at: 0, type: "u8", length: payload.length } })];
  }
}

/** A map, which is unambiguous in both formats. */
function binaryDocument(payload: Buffer): { readonly format: string; readonly document: object } | undefined {
  for (const [format, decode] of Object.entries({ cbor: cborDocument, msgpack: messagePackDocument })) {
    const document = ifReadable(() => decode(payload));
    const isMap = typeof document === "object" && document !== null && !Array.isArray(document);
    if (isMap && !(document instanceof Uint8Array)) return { format, document };
  }
  return undefined;
}

function hexadecimal(payload: Buffer): string {
  const digits = payload.subarray(0, shownBytes).toString("hex").toUpperCase();
  return `bytes ${digits}${payload.length > shownBytes ? "…" : ""}`;
}

function leavesOf(document: object, now: EpochMicros): readonly Leaf[] {
  const leaves: Leaf[] = [];
  const walk = (parent: object, path: string, names: readonly string[]) => {
    const list = Array.isArray(parent) ? namedList(parent, path, names, now) : undefined;
    if (list) {
      leaves.push(...list);
      return;
    }
    for (const [name, value] of Object.entries(parent)) {
      if (leaves.length >= maxLeaves) return;
      const at = path + stepTo(name, Array.isArray(parent));
      const inner = [...names, name];
      const found: unknown = value;
      if (found instanceof Uint8Array) continue;
      const time = sampleTime(found, parent, path, now);
      if (time && Array.isArray(found))
        leaves.push({ path: `${at}[*]`, names: inner, value: Number(found[0]), more: { each: "sample", time } });
      else if (typeof found === "object" && found !== null) {
        if (inner.length < maxDepth) walk(found, at, inner);
      } else if (isScalar(found)) leaves.push({ path: at, names: inner, value: found });
    }
  };
  walk(document, "$", []);
  return leaves;
}

function stepTo(name: string, index: boolean): string {
  if (index) return `[${name}]`;
  return dashed.test(name) ? `.${name}` : `['${name.replaceAll(/['\\]/g, String.raw`\$&`)}']`;
}

/** Names in braces stay placeholders, which the payload fills. */
function inputOf(levels: readonly string[], names: readonly string[]): string {
  const plain = (part: string) => part.replaceAll(/[^A-Za-z0-9\-_:#+]+/g, "_");
  const filled = names.map((name) => (/^\{\w+\}$/.test(name) ? name : plain(name)));
  return [...levels.map(plain), ...filled].join(".").slice(-128);
}

const keys = /^(?:name|channel|id|key|tag|sensor|type|n)$/i;
const simple = /^[A-Za-z_]\w*$/;
const dashed = /^[A-Za-z_][\w-]*$/;

/**
 * Handles lists whose elements name their signal, as `[{"channel":"temperature","value":22.4}, …]`. Returns the values
 * of the first element. Undefined: only the position distinguishes the elements.
 */
function namedList(
  elements: readonly unknown[],
  path: string,
  names: readonly string[],
  now: EpochMicros,
): readonly Leaf[] | undefined {
  const maps = elements.filter(
    (element): element is Readonly<Record<string, unknown>> =>
      typeof element === "object" && element !== null && !Array.isArray(element),
  );
  const [first] = maps;
  if (!first || maps.length < elements.length) return undefined;
  const { members, time, values } = timedMembers(first, simple, now);
  const key = members.find(([name]) => {
    const texts = maps.map((element) => element[name]);
    return keys.test(name) && texts.every((text) => typeof text === "string") && new Set(texts).size === texts.length;
  })?.[0];
  if (key === undefined || values.length === 0) return undefined;
  const at = `${path}[*]`;
  const more = { capture: { [key]: `${at}.${key}` }, ...(time !== undefined && { time: { at: `${at}.${time}` } }) };
  return values.map(([name, value]) => {
    const own = values.length > 1 ? [name] : [];
    return { path: `${at}.${name}`, names: [...names, `{${key}}`, ...own], value, more };
  });
}

/** The members with these names, the one that has the time, and the numbers and booleans among the others. */
function timedMembers(object: object, names: RegExp, now: EpochMicros) {
  const members = Object.entries(object).filter(([name]) => names.test(name));
  const time = members.find(([name, value]) => timeName.test(name) && isTime(value, now))?.[0];
  const values = members.flatMap(([name, value]: [string, unknown]) =>
    name !== time && (typeof value === "number" || typeof value === "boolean") ? [[name, value] as const] : [],
  );
  return { members, time, values };
}

/** Shorter lists of numbers are treated as separate signals. */
const leastSamples = 16;
const startName = /^(?:t0|start)$/i;
const stepName = /^(?:dt|step|interval|period)(?:_(s|ms|us|ns))?$/i;

/**
 * The time field for a block of samples `found` in `parent`, as in `{"t0":1767225600000,"dt_us":2500,"x":[12,-7, …]}`.
 * Undefined: `found` is no block, or its times are not specified.
 */
function sampleTime(found: unknown, parent: object, path: string, now: EpochMicros): object | undefined {
  if (!Array.isArray(found) || found.length < leastSamples || !found.every((each) => typeof each === "number"))
    return undefined;
  const members = Object.entries(parent).filter(([name]) => simple.test(name));
  const isStart = (name: string) => timeName.test(name) || startName.test(name);
  const start = members.find(([name, value]) => isStart(name) && isTime(value, now))?.[0];
  const step = members.find(([name, value]) => stepName.test(name) && typeof value === "number")?.[0];
  if (start === undefined || step === undefined) return undefined;
  const unit = stepName.exec(step)?.[1]?.toLowerCase() ?? "ms";
  return { at: `${path}.${start}`, step: { at: `${path}.${step}`, unit } };
}

// Format detection for payloads that are not a JSON document.

/** A value that a tag with these fields would read. */
interface GuessedValue {
  /** Names that distinguish the value within its topic; `{name}` for names from the payload. */
  readonly names: readonly string[];
  readonly value: Scalar;
  readonly tag: Readonly<Record<string, unknown>>;
}

/** Values of the first matching format, or none. */
function guessFormat(payload: Buffer, now: EpochMicros): readonly GuessedValue[] {
  for (const guess of [senml, jsonLinesOf, lineProtocol, number, csv]) {
    const found = ifReadable(() => guess(payload, now)) ?? [];
    if (found.length > 0) return found;
  }
  return [];
}

type Records = readonly Readonly<Record<string, unknown>>[];

/** The first record that is not malformed. */
function wellFormed(records: Records): Records[number] | undefined {
  return records.find((each) => !(each instanceof PayloadError));
}

function senml(payload: Buffer, now: EpochMicros): readonly GuessedValue[] {
  if (!/^\s*\[\s*\{[^}]*"b?n"\s*:/.test(utf8(payload))) return [];
  const records = senmlRecords(payload, now) as Records; // as returned by the decoder
  const first = wellFormed(records);
  if (!first || records.some(({ name }) => name === "")) return [];
  return [{ names: ["{name}"], value: scalar(first["value"]), tag: { format: "senml" } }];
}

function jsonLinesOf(payload: Buffer, now: EpochMicros): readonly GuessedValue[] {
  if (ifReadable(() => jsonDocument(payload)) !== undefined) return [];
  const lines = jsonLines(payload);
  const [first] = Array.isArray(lines) ? (lines as readonly unknown[]) : []; // as returned by the decoder
  if (typeof first !== "object" || first === null || Array.isArray(first)) return [];
  const { time, values } = timedMembers(first, dashed, now);
  const timed = time !== undefined && { time: { at: `$[*].${time}` } };
  return values.map(([name, value]) => {
    const tag = { format: "ndjson", value: `$[*].${name}`, each: "sample", ...timed };
    return { names: [name], value, tag };
  });
}

function lineProtocol(payload: Buffer): readonly GuessedValue[] {
  // The trailing time distinguishes line protocol from a sentence.
  if (!/^\S+ \S+=\S+(?: \d{16,})\s*$/m.test(utf8(payload))) return [];
  const records = lineProtocolRecords(payload) as Records; // as returned by the decoder
  const first = wellFormed(records);
  const names = ["{measurement}", "{field}"];
  return first ? [{ names, value: scalar(first["value"]), tag: { format: "lineProtocol" } }] : [];
}

/** A number with a unit or a decimal comma. */
function number(payload: Buffer): readonly GuessedValue[] {
  for (const decimal of [".", ","] as const) {
    const value = ifReadable(() => numberDecoder(decimal)(payload));
    if (value !== undefined)
      return [{ names: [], value, tag: { format: "number", ...(decimal === "," && { decimal }) } }];
  }
  return [];
}

const separators = [";", "\t", ","] as const;

/** Columns of the first line, or of the second line if the first is a header. */
function csv(payload: Buffer, now: EpochMicros): readonly GuessedValue[] {
  const text = utf8(payload);
  const separator = separators.find((each) => text.includes(each));
  if (separator === undefined) return [];
  const decimal = separator !== "," && /(?:^|[;\t])[+-]?\d+,\d+(?:$|[;\t])/m.test(text) ? "," : ".";
  const rows = csvDecoder({ separator, header: false, decimal })(payload) as readonly (readonly string[])[]; // as returned by the decoder
  const header = rows.length > 1 && rows[0]?.every((field) => field !== undefined && parseDecimal(field) === undefined);
  const [names = [], row] = header ? rows : [[], rows[0]];
  if (!row || row.length < 2 || rows.some(({ length }) => length !== row.length)) return [];
  const place = (i: number) => (header ? `$[0][${JSON.stringify(names[i])}]` : `$[0][${i}]`);
  const time = row.findIndex((field) => field !== undefined && isTime(field, now));
  return row.flatMap((field, i): GuessedValue[] => {
    const value = i === time || field === undefined ? undefined : parseDecimal(field);
    if (value === undefined) return [];
    const tag = {
      format: "csv",
      csv: { separator, ...(header === true && { header }) },
      ...(decimal === "," && { decimal }),
      value: place(i),
      ...(time >= 0 && { time: { at: place(time) } }),
    };
    return [{ names: [names[i] ?? String(i)], value, tag }];
  });
}

const timeName = /^(?:ts|t|time|timestamp|timestamp_ms|last_seen|datetime|received_at|sampled_at)$/i;

function isTime(value: unknown, now: EpochMicros): boolean {
  return typeof payloadTime(value, "auto", undefined, now) === "number";
}

function scalar(value: unknown): Scalar {
  return isScalar(value) ? value : String(value);
}
