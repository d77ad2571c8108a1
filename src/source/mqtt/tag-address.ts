// Where a tag's values, times and names are in a document: what the configuration says, or what its format implies.
import { defaultTimeRule } from "../../lib/device-time.ts";
import type { DecoderName } from "./decoders/decoder.ts";
import { type JsonPath, parseJsonPath } from "./json-path.ts";
import { type SparkplugScope, sparkplugScope } from "./sparkplug/scope.ts";
import type { MqttTag } from "./tag.ts";

/** The places, with all defaults filled in. */
export interface TagAddress {
  /** What is subscribed for the tag. */
  readonly filter: string;
  /** Levels that topics are matched against. */
  readonly levels: readonly string[];
  /** Sparkplug B: the edge nodes and devices that the topic means. */
  readonly scope: SparkplugScope | undefined;
  readonly decoder: DecoderName;
  readonly value: JsonPath | undefined;
  readonly time: MqttTag["time"];
  readonly capture: Readonly<Record<string, JsonPath>>;
  /** Names of `capture`. */
  readonly captureNames: readonly string[];
  /** Whether `[*]` finds signals that have no other name than their place, `{i}`. */
  readonly numbered: boolean;
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
  const { topic, format, value, time, capture } = tag;
  const own = value ? undefined : implied[format];
  const names = { ...own?.capture, ...capture };
  const captureNames = Object.keys(names);
  const scope = scopeOf(tag);
  return {
    filter: scope ? scope.levels.join("/") : topic.filter,
    levels: scope?.levels ?? topic.levels,
    scope,
    decoder: format === "auto" ? guess(tag) : format,
    value: value ?? own?.value,
    numbered: value?.many === true && tag.each === "signal" && captureNames.length === 0,
    time: timeIn(time, own?.time),
    capture: names,
    captureNames,
  };
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

/** Names that a tag captures: from its topic, from the payload, and `i` where `[*]` finds signals. */
export function tagCaptures(tag: MqttTag): readonly string[] {
  if (tag.format === "sparkplugB")
    return [...new Set([...tag.topic.captures.map(({ name }) => name), ...sparkplugNames])];
  const { numbered, captureNames } = tagAddress(tag);
  const made = [...(numbered ? ["i"] : []), ...(tag.names ? ["name"] : [])];
  return [...tag.topic.captures.map(({ name }) => name), ...captureNames, ...made];
}

function path(text: string): JsonPath {
  const parsed = parseJsonPath(text);
  if (!parsed) throw new TypeError(`not a path: ${text}`);
  return parsed;
}
