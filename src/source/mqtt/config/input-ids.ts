// Checks for several topics or payload parts that share an Input ID, and for Input IDs that depend on list positions.
import type { Ambiguity, ConfigWarning, DriverTag, TagOverlap } from "../../../core/driver.ts";
import type { Captures, TagId } from "../../../core/source.ts";
import { isKind, isWild, levelsOf } from "../decoders/json-path.ts";
import { capturesIn } from "../topics/topic-template.ts";
import { TopicTrie } from "../topics/topic-trie.ts";
import type { MqttTag, mqttTag } from "./tag.ts";
import { tagAddress, tagCaptures } from "./tag-address.ts";

/** `names`: the captures that the Input ID uses. */
export function topicAmbiguity(tag: MqttTag, names: readonly string[]): Ambiguity | undefined {
  return tag.format === "sparkplugB" ? sparkplugAmbiguity(tag, names) : messageAmbiguity(tag, names);
}

function messageAmbiguity(tag: MqttTag, names: readonly string[]): Ambiguity | undefined {
  const { pattern, captures } = tag.topic;
  const levels = pattern.split("/");
  // A level that contains a time is not part of the address.
  const distinct = new Set(
    captures.filter(({ name }) => names.includes(name) || name === tag.time?.capture).map(({ level }) => level),
  );
  const wild = levels.flatMap((part, level) => ((part === "+" || part === "#") && !distinct.has(level) ? [level] : []));
  const { captureNames, capture, depth } = tagAddress(tag);
  const missing = captureNames.filter((name) => !names.includes(name) && tag.descriptive?.includes(name) !== true);
  // A name that only `signal` uses does not distinguish elements. A name that is used nowhere is in `missing`.
  const tells = (name: string) =>
    names.includes(name) || missing.includes(name) || (tag.names?.of === name && names.includes("name"));
  const paths = captureNames.filter(tells).flatMap((name) => capture[name] ?? []);
  const needed = neededLevels(depth, Math.min(depth, Math.max(0, ...paths.map(levelsOf))), names);
  if (needed !== undefined)
    return {
      message: `needs ${needed} in it, since [*] gives several values`,
      remedy: `as in hall.${needed}.temp; or write \`shared: true\``,
      always: true,
    };
  // An identifier from the payload is enough, regardless of the topic. The mapping reports duplicates at run time.
  if (captureNames.some((name) => names.includes(name)) && missing.length === 0) return undefined;
  const [first] = wild;
  if (first !== undefined) {
    const known = captures.find(({ level }) => level === first);
    const wider = levels[first] === "#" ? "{path...} in place of #" : "{name} in place of +";
    const capture = known ? `{${known.name}}` : wider;
    const use = known ? `use ${capture} in` : `capture what differs, with ${capture}, and use it in`;
    return contested(`several topics match ${tag.topic.text} and`, use);
  }
  return missing.length === 0 ? undefined : different("parts of a payload", missing);
}

function contested(what: string, use: string): Ambiguity {
  return {
    message: `${what} come to one Input ID; the first one feeds it, values of the others are refused`,
    remedy: `${use} \`input\`; or write \`shared: true\``,
  };
}

function different(what: string, names: readonly string[]): Ambiguity {
  const uses = names.map((name) => `{${name}}`).join(" and ");
  return contested(`${what} that differ in ${uses}`, `use ${uses} in`);
}

/** Placeholder missing in `input` for elements of `depth` levels, of which captures name the first `named`. */
function neededLevels(depth: number, named: number, names: readonly string[]): string | undefined {
  if (names.includes("i") || depth === named) return undefined;
  if (names.includes("key") && depth === named + 1) return undefined;
  for (let k = named + 1; k <= depth; k++)
    if (!names.includes(`i${k}`) && !(k === depth && names.includes("key"))) return depth === 1 ? "{i}" : `{i${k}}`;
  return undefined;
}

function sparkplugAmbiguity(tag: MqttTag, names: readonly string[]): Ambiguity | undefined {
  const { scope } = tagAddress(tag);
  if (!scope) return undefined;
  const fills = new Set<string>(names);
  for (const { name, part } of scope.names) if (names.includes(name)) fills.add(part);
  const [group, node] = scope.levels.slice(scope.levels.indexOf("spBv1.0") + 1).filter((_, i) => i !== 1);
  const varies = {
    group: group === undefined || group === "+" || group === "#",
    node: group === "#" || node === undefined || node === "+" || node === "#",
    device: scope.device === undefined || scope.device === "+",
    metric: tag.metric === undefined || tag.metric.endsWith("*"),
  };
  const missing = Object.entries(varies).flatMap(([name, many]) => (many && !fills.has(name) ? [name] : []));
  return missing.length === 0 ? undefined : different("metrics", missing);
}

const remedy =
  "use {key} where [*] finds the members of an object, or a field that names the element: capture: { id: ... }";

/** `names`: the captures that the Input ID uses. */
export function positionRemarks(tag: MqttTag, names: readonly string[]): readonly ConfigWarning[] {
  const { depth, batchDepth, captureNames } = tagAddress(tag);
  const remarks: ConfigWarning[] = [];
  const warn = (message: string, hint = `${remedy}; {i1} says that the order never changes`) =>
    remarks.push({ field: "input", message, hint });
  for (let k = 1; k <= batchDepth; k++)
    if (names.includes(`i${k}`))
      warn(`has {i${k}} in it: the position of an element of a batch, so an Input ID changes with the batch`, remedy);
  if (!names.includes("i")) return remarks;
  const isNamed = captureNames.some((name) => names.includes(name));
  if (batchDepth === depth && depth > 0 && !isNamed)
    warn(
      "has {i} in it, which is empty for the elements of a list with times of their own: they are a batch, and their values are not stored",
    );
  else if (recordLevels(tag).some((level) => level > batchDepth))
    warn(
      "has {i} in it: for records in a list that is their position, and another record may stand there in the next message",
    );
  return remarks;
}

/** Wildcard levels of `value` whose elements have members on the path. In a list, such elements are records. */
function recordLevels({ value }: MqttTag): readonly number[] {
  let level = 0;
  return (value?.steps ?? []).flatMap((step, i, steps) => {
    if (!isWild(step)) return [];
    level++;
    const next = steps[i + 1];
    return typeof next === "string" || isKind(next, "leaves") ? [level] : [];
  });
}

/**
 * Pairs of tags that read the same value from each message of the narrower topic. Both must look for the value in the
 * same way. Sparkplug metrics and shared subscriptions are excluded.
 */
export function* topicOverlaps(tags: readonly DriverTag<typeof mqttTag>[]): Generator<TagOverlap> {
  const wide = new TopicTrie<number>();
  const plain = [...tags.entries()].filter(
    ([, { format, topic }]) => format !== "sparkplugB" && topic.filter === topic.pattern,
  );
  for (const [index, { topic }] of plain) if (isPattern(topic.pattern)) wide.insert(topic.pattern, index);
  for (const [index, tag] of plain)
    for (const other of wide.match(tag.topic.pattern)) {
      const covering = tags[other];
      if (!covering || other === index || (covering.topic.pattern === tag.topic.pattern && other > index)) continue;
      // The result of a capture function depends on the level, so an example cannot stand for a pattern.
      const applies = [tag, covering].some(({ topic }) => topic.captures.some(({ apply }) => apply !== undefined));
      if (applies && isPattern(tag.topic.pattern)) continue;
      if (placeOf(tag) !== placeOf(covering)) continue;
      const example = exampleOf(tag.topic.pattern);
      yield {
        tags: [other as TagId, index as TagId], // a TagId is the index of its tag
        captures: [exampleCaptures(covering, example), exampleCaptures(tag, example)],
        what: `each message of ${tag.topic.text}`,
      };
    }
}

function isPattern(filter: string): boolean {
  return /[+#]/.test(filter);
}

/** Everything that determines which value the tag reads from a message. */
function placeOf(tag: DriverTag<typeof mqttTag>): string {
  return JSON.stringify({ ...tag, topic: undefined, every: undefined, fills: undefined, descriptive: undefined });
}

/** A topic that `filter` matches, made of levels that no real topic has. */
function exampleOf(filter: string): string {
  const levels = filter
    .split("/")
    .map((level, i) => (level === "+" ? `Qz${i}x` : level === "#" ? `Qz${i}x/Qz${i}y` : level));
  return levels.join("/");
}

/** Captures of an example topic. Names from the payload get the same text for all tags. */
function exampleCaptures(tag: MqttTag, topic: string): Captures {
  const named = Object.fromEntries(tagCaptures(tag).map((name) => [name, `Qz-${name}`]));
  return { ...named, ...capturesIn(topic, tag.topic.captures) };
}
