// Functions that a level of a topic goes through before it is a capture: `{line|lower}`, `{room|map(1=hall,2=yard)}`.
// Pure; runs once per topic, not per message.

/** Turns what stood in the topic into the capture. */
export type CaptureFunction = (text: string) => string;

type Make = (args: readonly string[]) => CaptureFunction | undefined;

/** Undefined: the arguments are not what the function needs. */
const functions: Readonly<Record<string, Make>> = {
  lower: none((text) => text.toLowerCase()),
  upper: none((text) => text.toUpperCase()),
  // What is left is safe in any Input ID.
  slug: none((text) =>
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
    const table = new Map(pairs.map((pair) => splitAt(pair, pair.indexOf("="))));
    // What is not in the table stays as it is.
    return pairs.every((pair) => pair.indexOf("=") > 0) ? (text) => table.get(text) ?? text : undefined;
  },
};

/** The functions written behind a name, `|lower|replace(a,b)`, as one; or why they are none (to be read after "must"). */
export function parseCaptureFunctions(text: string): CaptureFunction | string {
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

function none(apply: CaptureFunction): Make {
  return (args) => (args.length === 0 ? apply : undefined);
}

function splitAt(text: string, at: number): readonly [string, string] {
  return [text.slice(0, at), text.slice(at + 1)];
}
