// Topic templates: `sensors/{room}/env` subscribes to `sensors/+/env` and captures the second level as `room`. Captures
// may pass through functions: `{line|lower}`, `{room|map(1=hall,2=yard)}`. Runs once per topic, not per message.
import type { Captures } from "../../../core/source.ts";
import { parsedText } from "../../../lib/values/fields.ts";

export interface TopicTemplate {
  /** The configured text. */
  readonly text: string;
  /** Subscription filter, with wildcards for captures and including `$share/<group>/`. */
  readonly filter: string;
  /** Pattern to match topics: the filter without `$share/<group>/`. */
  readonly pattern: string;
  /** Captures by level. `rest`: includes all following levels. */
  readonly captures: readonly TopicCapture[];
}

interface TopicCapture {
  readonly name: string;
  readonly level: number;
  readonly rest: boolean;
  /** Function applied to the text. Undefined: none. */
  readonly apply?: CaptureFunction;
}

const none: readonly TopicCapture[] = [];

/** The template, or an error to be read after "must". */
export function parseTopicTemplate(text: string): TopicTemplate | string {
  if (text === "") return "not be empty";
  if (Buffer.byteLength(text) > 65_535) return "be at most 65,535 bytes long";
  // A broker may answer such a filter by closing the connection (MQTT 5, 1.5.4), which costs all tags of the source.
  if (/[\p{Cc}\p{Noncharacter_Code_Point}]/u.test(text))
    return "not contain a control character, such as a tab or a line break";
  const captures: TopicCapture[] = [];
  const all = text.split("/");
  const shared = all[0] === "$share" ? all.splice(0, 2) : [];
  if (shared.length > 0 && (!shared[1] || /[+#{}]/.test(shared[1]) || all.length === 0))
    return "be $share/<group>/<topic> for a shared subscription";
  const levels: string[] = [];
  for (const [level, part] of all.entries()) {
    const last = level === all.length - 1;
    const capture = /^\{([A-Za-z_][\w-]*)((?:\|[^|{}]*?)*?)(\.\.\.)?\}$/.exec(part);
    if (capture?.[1]) {
      const name = capture[1];
      const rest = capture[3] !== undefined;
      const apply = capture[2] ? parseCaptureFunctions(capture[2]) : undefined;
      if (typeof apply === "string") return apply;
      if (rest && !last) return `have {${name}...} at its end only`;
      if (captures.some((other) => other.name === name)) return `capture {${name}} once only`;
      captures.push({ name, level, rest, ...(apply && { apply }) });
      levels.push(rest ? "#" : "+");
    } else if (/[{}]/.test(part)) {
      return `have a capture fill a whole level, as in a/{name}/b or a/{name...}, not ${part}`;
    } else if (part === "#" && !last) {
      return "have # as its last level only";
    } else if (part.length > 1 && /[+#]/.test(part)) {
      return `have + and # fill a whole level, not ${part}`;
    } else levels.push(part);
  }
  // Saves memory for 100,000 topics without captures or group: only one string is kept.
  if (captures.length === 0 && shared.length === 0) return { text, filter: text, pattern: text, captures: none };
  const pattern = levels.join("/");
  return { text, filter: [...shared, pattern].join("/"), pattern, captures };
}

const noCaptures: Captures = {};

export function capturesIn(topic: string, captures: readonly TopicCapture[]): Captures {
  if (captures.length === 0) return noCaptures;
  const levels = topic.split("/");
  return Object.fromEntries(
    captures.map(({ name, level, rest, apply }) => {
      const text = rest ? levels.slice(level).join("/") : (levels[level] ?? "");
      return [name, apply ? apply(text) : text];
    }),
  );
}

export function topicTemplate() {
  return parsedText(parseTopicTemplate);
}

export type CaptureFunction = (text: string) => string;

type Make = (args: readonly string[]) => CaptureFunction | undefined;

/** Functions return undefined for invalid arguments. */
const functions: Readonly<Record<string, Make>> = {
  lower: withoutArguments((text) => text.toLowerCase()),
  upper: withoutArguments((text) => text.toUpperCase()),
  // The result is valid in any Input ID.
  slug: withoutArguments((text) =>
    text
      .normalize("NFKD")
      .replaceAll(/\p{M}/gu, "")
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, "-")
      .replaceAll(/^-|-$/g, ""),
  ),
  replace: ([from, to = "", ...rest]) =>
    from && rest.length === 0 ? (text) => text.replaceAll(from, () => to) : undefined,
  default: ([value, ...rest]) => (value && rest.length === 0 ? (text) => (text === "" ? value : text) : undefined),
  map: (pairs) => {
    const table = new Map(pairs.map((pair) => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
    // Texts that are not in the table stay unchanged.
    return pairs.every((pair) => pair.indexOf("=") > 0) ? (text) => table.get(text) ?? text : undefined;
  },
};

/** Composes functions such as `|lower|replace(a,b)`, or returns an error to be read after "must". */
function parseCaptureFunctions(text: string): CaptureFunction | string {
  const calls = [...text.matchAll(/\|([a-z]+)(?:\(([^()]*)\))?/gy)];
  if (calls.map(([call]) => call).join("") !== text)
    return `have functions as in {name|lower|replace(a,b)}, not ${text}`;
  const made: CaptureFunction[] = [];
  for (const [call, name = "", args] of calls) {
    const make = Object.hasOwn(functions, name) ? functions[name] : undefined;
    if (!make) return `have one of the functions ${Object.keys(functions).join(", ")}, not ${name}`;
    const found = make(args === undefined ? [] : args.split(","));
    if (!found)
      return `give the function other arguments: lower, replace(a,b), default(x), map(a=b,c=d), not ${call.slice(1)}`;
    made.push(found);
  }
  return (level) => made.reduce((done, apply) => apply(done), level);
}

function withoutArguments(apply: CaptureFunction): Make {
  return (args) => (args.length === 0 ? apply : undefined);
}
