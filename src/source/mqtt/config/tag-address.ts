// Paths to a tag's values, times and names in a document, from the configuration or implied by the format.
import { defaultTimeRule } from "../../../lib/readings/device-time.ts";
import type { DecoderName } from "../decoders/decoder.ts";
import { type JsonPath, levelsOf, parseJsonPath } from "../decoders/json-path.ts";
import { type SparkplugScope, sparkplugScope } from "../topics/sparkplug-topic.ts";
import type { MqttTag } from "./tag.ts";

export interface TagAddress {
  /** Sparkplug B only: the edge nodes and devices that the topic selects. */
  readonly scope: SparkplugScope | undefined;
  readonly decoder: DecoderName;
  readonly value: JsonPath | undefined;
  readonly time: MqttTag["time"];
  readonly capture: Readonly<Record<string, JsonPath>>;
  readonly captureNames: readonly string[];
  /** Number of `[*]` and `.**` in `value` that lead to signals. 0 if they lead to samples of one signal. */
  readonly depth: number;
  /** Number of these levels that `capture` or `time` also uses: their list elements have no fixed order. */
  readonly batchDepth: number;
  /** Names that the tag uses for the matches of `[*]` and `.**`: `i`, `key`, `i1`, `i2`. */
  readonly levelNames: readonly string[];
}

/** Paths of formats with a fixed document structure. */
const implied: Readonly<Partial<Record<MqttTag["format"], Pick<TagAddress, "value" | "time" | "capture">>>> = {
  senml: {
    value: path("$[*].value"),
    time: { at: path("$[*].time"), format: "unixS", anchor: "first", ...defaultTimeRule },
    capture: { name: path("$[*].name") },
  },
  lineProtocol: {
    value: path("$[*].value"),
    // Nanoseconds, unless the sender was configured for another precision.
    time: { at: path("$[*].time"), format: "auto", anchor: "first", ...defaultTimeRule },
    capture: { measurement: path("$[*].measurement"), field: path("$[*].field") },
  },
};

export function tagAddress(tag: MqttTag): TagAddress {
  const { format, value, time, capture, each, fills } = tag;
  const own = value ? undefined : implied[format];
  const names = { ...own?.capture, ...capture };
  const captureNames = Object.keys(names);
  const depth = value?.many && each === "signal" ? levelsOf(value) : 0;
  const made = depth === 0 ? [] : ["i", "key", ...Array.from({ length: depth }, (_, k) => `i${k + 1}`)];
  const others = [...Object.values(names), ...[time?.at ?? []].flat()];
  return {
    scope: scopeOf(tag),
    decoder: format === "auto" ? guess(tag) : format,
    value: value ?? own?.value,
    depth,
    batchDepth: Math.min(depth, Math.max(0, ...others.map(levelsOf))),
    // Captures that the operator configured take precedence.
    levelNames: made.filter((name) => !Object.hasOwn(names, name) && fills?.includes(name) !== false),
    time: timeIn(time, own?.time),
    capture: names,
    captureNames,
  };
}

export function tagFilter(tag: MqttTag): string {
  return scopeOf(tag)?.levels.join("/") ?? tag.topic.filter;
}

/** The pattern that matches the topics of the tag. */
export function tagPattern(tag: MqttTag): string {
  return scopeOf(tag)?.levels.join("/") ?? tag.topic.pattern;
}

/** The configured time. Without a configured place, the place and format are those implied by the format. */
function timeIn(time: MqttTag["time"], own: MqttTag["time"]): MqttTag["time"] {
  if (!time || !own || (time.at ?? time.capture ?? time.property) !== undefined) return time ?? own;
  const { format, unusable, maxAhead } = time;
  return { ...own, ...(format !== "auto" && { format }), unusable, maxAhead };
}

function scopeOf({ format, topic }: MqttTag): SparkplugScope | undefined {
  if (format !== "sparkplugB") return undefined;
  const scope = sparkplugScope(topic);
  // The schema has rejected topics that have no scope.
  return typeof scope === "string" ? undefined : scope;
}

function guess({ value, time, capture, quality, bytes }: MqttTag): DecoderName {
  if (value ?? time?.at ?? quality ?? Object.values(capture)[0]) return "json";
  return bytes ? "binary" : "bare";
}

/** Captures of every Sparkplug metric. */
const sparkplugNames: readonly string[] = ["group", "node", "device", "metric"];

/** Names that a tag captures: from its topic, from the payload, and from the matches of `[*]` that find signals. */
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
