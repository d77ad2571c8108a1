// Sparkplug topics, `spBv1.0/<group>/<type>/<node>[/<device>]`, and the scope of a tag's topic. The filter must cover
// all messages of an edge node, since its birth contains the names and `seq` counts across its devices.
import type { Captures } from "../../../core/source.ts";
import type { CaptureFunction, TopicTemplate } from "./topic-template.ts";

const types = ["NBIRTH", "NDATA", "NDEATH", "DBIRTH", "DDATA", "DDEATH"] as const;

export interface SparkplugTopic {
  readonly type: (typeof types)[number];
  readonly group: string;
  readonly node: string;
  /** Empty for messages of the node itself. */
  readonly device: string;
}

/** Prefix under which Sparkplug-aware brokers retain births. */
const certificatePrefix = "$sparkplug/certificates/";

/** Parses a topic with an edge node's data. Undefined for other topics, such as STATE and commands. */
export function parseSparkplugTopic(topic: string): SparkplugTopic | undefined {
  const own = topic.startsWith(certificatePrefix) ? topic.slice(certificatePrefix.length) : topic;
  const [namespace, group, word, node, device = "", ...rest] = own.split("/");
  const type = types.find((each) => each === word);
  if (namespace !== "spBv1.0" || !group || !node || !type || rest.length > 0) return undefined;
  return type.startsWith("D") === (device !== "") ? { type, group, node, device } : undefined;
}

/** Whether the topic carries the state or commands of hosts, which every host receives and which are no data. */
export function isHostTopic(topic: string): boolean {
  return /^spBv1\.0\/(?:STATE(?:\/|$)|[^/]+\/[ND]CMD\/)/.test(topic);
}

export interface SparkplugScope {
  /** Levels of the filter that covers all messages of the selected edge nodes. */
  readonly levels: readonly string[];
  /** Selected device. Empty: the node itself, `+`: any device, undefined: node and devices. */
  readonly device: string | undefined;
  /** Additional capture names of the topic. */
  readonly names: readonly ScopeName[];
}

interface ScopeName {
  readonly name: string;
  readonly part: Part;
  readonly apply?: CaptureFunction;
}

type Part = "group" | "node" | "device";

const parts: readonly (Part | undefined)[] = [undefined, "group", undefined, "node", "device"];

/** The scope, or an error to be read after "must". */
export function sparkplugScope({ filter, pattern, captures }: TopicTemplate): SparkplugScope | string {
  if (filter.startsWith("$share/"))
    return "not be a shared subscription, since the messages of an edge node are understood together only";
  const levels = pattern.split("/");
  const prefix = pattern.startsWith(certificatePrefix) ? levels.slice(0, 2) : [];
  const own = levels.slice(prefix.length);
  const names: ScopeName[] = [];
  for (const { name, level, rest, apply } of captures) {
    const part = rest ? undefined : parts[level - prefix.length];
    if (part === undefined)
      return `capture group, node and device only, as in spBv1.0/{group}/+/{node}/{device}, not {${name}}`;
    names.push({ name, part, ...(apply && { apply }) });
  }
  const [namespace = "", group = "", , node, device = ""] = own;
  const wide = node === undefined ? own : [namespace, group, "+", node, ...(node === "#" ? [] : ["#"])];
  const isAny = node === undefined || node === "#" || device === "#";
  return { levels: [...prefix, ...wide], device: isAny ? undefined : device, names };
}

/** Whether the scope includes metrics of `device` (empty: the node itself). */
export function isInScope(scope: SparkplugScope | undefined, device: string): boolean {
  const wanted = scope?.device;
  if (wanted === undefined) return true;
  return wanted === "+" ? device !== "" : device === wanted;
}

/**
 * Adds the topic's captures to those of a metric: group, node, device and metric. Returns the same object for the same
 * metric.
 */
export function scopeCaptures({ names }: SparkplugScope): (known: Captures) => Captures {
  const made = new WeakMap<Captures, Captures>();
  return (known) => {
    if (names.length === 0) return known;
    const before = made.get(known);
    if (before) return before;
    const own = names.map(({ name, part, apply = (text: string) => text }) => [name, apply(known[part] ?? "")]);
    const captures = { ...known, ...Object.fromEntries(own) };
    made.set(known, captures);
    return captures;
  };
}
