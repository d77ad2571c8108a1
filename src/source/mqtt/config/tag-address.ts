// Where a tag's values, times and names are in a document: what the configuration says, or what its format implies.
import { defaultTimeRule } from "../../../lib/device-time.ts";
import type { DecoderName } from "../decoders/decoder.ts";
import { type JsonPath, levelsOf, parseJsonPath } from "../decoders/json-path.ts";
import { type SparkplugScope, sparkplugScope } from "../topics/sparkplug-topic.ts";
import type { MqttTag } from "./tag.ts";

/** The places, with all defaults filled in. */
export interface TagAddress {
  /** Sparkplug B: the edge nodes and devices that the topic means. */
  readonly scope: SparkplugScope | undefined;
  readonly decoder: DecoderName;
  readonly value: JsonPath | undefined;
  readonly time: MqttTag["time"];
  readonly capture: Readonly<Record<string, JsonPath>>;
  /** Names of `capture`. */
  readonly captureNames: readonly string[];
  /** How many `[*]` and `.**` of `value` lead to signals; 0 where they lead to samples of one. */
  readonly depth: number;
  /**
   * How many of these levels `capture` or `time` goes through, too: there the elements of a list are a batch of records, which
   * have names or times of their own, and not places in a fixed order.
   */
  readonly batchDepth: number;
  /** Names made of what stood for `[*]` and `.**` that the tag uses: `i`, `key`, `i1`, `i2`. */
  readonly levelNames: readonly string[];
}

/** Formats whose documents are always of one shape say where things are in it. */
const implied: Readonly<Partial<Record<MqttTag["format"], Pick<TagAddress, "value" | "time" | "capture">>>> = {
  senml: {
    value: path("$[*].value"),
    time: { at: path("$[*].time"), format: "unixS", anchor: "first", ...defaultTimeRule },
    capture: { name: path("$[*].name") },
  },
  lineProtocol: {
    value: path("$[*].value"),
    time: { at: path("$[*].time"), format: "unixNs", anchor: "first", ...defaultTimeRule },
    capture: { measurement: path("$[*].measurement"), field: path("$[*].field") },
  },
};

/** The places in documents of this tag. */
export function tagAddress(tag: MqttTag): TagAddress {
  const { format, value, time, capture } = tag;
  const own = value ? undefined : implied[format];
  const names = { ...own?.capture, ...capture };
  const captureNames = Object.keys(names);
  return {
    scope: scopeOf(tag),
    decoder: format === "auto" ? guess(tag) : format,
    value: value ?? own?.value,
    ...levelsIn(tag, names),
    time: timeIn(time, own?.time),
    capture: names,
    captureNames,
  };
}

type Depths = Pick<TagAddress, "depth" | "batchDepth" | "levelNames">;
const noDepths: Depths = { depth: 0, batchDepth: 0, levelNames: [] };

function levelsIn({ value, each, time, fills }: MqttTag, capture: TagAddress["capture"]): Depths {
  if (!value?.many || each !== "signal") return noDepths;
  const depth = levelsOf(value);
  const others = [...Object.values(capture), ...[time?.at ?? []].flat()];
  const made = ["i", "key", ...Array.from({ length: depth }, (_, k) => `i${k + 1}`)];
  return {
    depth,
    batchDepth: Math.min(depth, Math.max(0, ...others.map(levelsOf))),
    // Names that the operator gave go before these.
    levelNames: made.filter((name) => !Object.hasOwn(capture, name) && fills?.includes(name) !== false),
  };
}

/** What is subscribed for the tag. */
export function tagFilter(tag: MqttTag): string {
  return scopeOf(tag)?.levels.join("/") ?? tag.topic.filter;
}

/** What topics are matched against for the tag. */
export function tagPattern(tag: MqttTag): string {
  return scopeOf(tag)?.levels.join("/") ?? tag.topic.pattern;
}

/** What is configured; the place and format are those of the format if no place is. */
function timeIn(time: MqttTag["time"], own: MqttTag["time"]): MqttTag["time"] {
  if (!time || !own || (time.at ?? time.capture ?? time.property) !== undefined) return time ?? own;
  return { ...own, unusable: time.unusable, maxAhead: time.maxAhead };
}

function scopeOf({ format, topic }: MqttTag): SparkplugScope | undefined {
  if (format !== "sparkplugB") return undefined;
  const scope = sparkplugScope(topic);
  // What it complains of was refused by the schema.
  return typeof scope === "string" ? undefined : scope;
}

function guess({ value, time, capture, quality, bytes }: MqttTag): DecoderName {
  if (value ?? time?.at ?? quality ?? Object.values(capture)[0]) return "json";
  return bytes ? "binary" : "bare";
}

/** What every Sparkplug metric is known by. */
const sparkplugNames: readonly string[] = ["group", "node", "device", "metric"];

/** Names that a tag captures: from its topic, from the payload, and of what stood for `[*]` where it finds signals. */
export function tagCaptures(tag: MqttTag): readonly string[] {
  if (tag.format === "sparkplugB")
    return [...new Set([...tag.topic.captures.map(({ name }) => name), ...sparkplugNames])];
  const { levelNames, captureNames } = tagAddress(tag);
  const made = [...levelNames, ...(tag.names ? ["name"] : [])];
  return [...new Set([...tag.topic.captures.map(({ name }) => name), ...captureNames, ...made])];
}

function path(text: string): JsonPath {
  const parsed = parseJsonPath(text);
  if (!parsed) throw new TypeError(`not a path: ${text}`);
  return parsed;
}
