// Finds the filters that match a topic, however many filters there are. Pure.
//
// A tree of levels: at each level of a topic there are at most three ways on, the level itself, `+` and `#`. Rules of
// MQTT 5, 4.7: `#` also matches the level above it, `+` also an empty level, and a wildcard at the beginning matches no
// topic that begins with `$`.

interface Branch<T> {
  readonly named: Map<string, Branch<T>>;
  /** `+` */
  one: Branch<T> | undefined;
  /** What stands for filters that end here. */
  readonly here: T[];
  /** What stands for filters that end in `#` from here on. */
  readonly rest: T[];
}

/** Characters of topics that are worth remembering: of 65,535, as the protocol allows, there could be gigabytes. */
export const maxTopic = 1_024;

/** Topic filters and what stands for each. */
export class TopicTrie<T> {
  readonly #root: Branch<T> = branch();

  /** `levels` of a topic filter, `+` and `#` included. */
  insert(levels: readonly string[], value: T): void {
    let at = this.#root;
    for (const level of levels) {
      if (level === "#") {
        at.rest.push(value);
        return;
      }
      at = level === "+" ? (at.one ??= branch()) : named(at, level);
    }
    at.here.push(value);
  }

  /** What stands for the filters that match the topic of these levels, in no particular order. */
  match(levels: readonly string[]): T[] {
    const found: T[] = [];
    if (levels[0]?.startsWith("$")) {
      const first = this.#root.named.get(levels[0]);
      if (first) collect(first, levels, 1, found);
    } else collect(this.#root, levels, 0, found);
    return found;
  }
}

function collect<T>(at: Branch<T>, levels: readonly string[], depth: number, found: T[]): void {
  for (const value of at.rest) found.push(value);
  const level = levels[depth];
  if (level === undefined) {
    for (const value of at.here) found.push(value);
    return;
  }
  const next = at.named.get(level);
  if (next) collect(next, levels, depth + 1, found);
  if (at.one) collect(at.one, levels, depth + 1, found);
}

function named<T>(at: Branch<T>, level: string): Branch<T> {
  const known = at.named.get(level);
  if (known) return known;
  const made = branch<T>();
  at.named.set(level, made);
  return made;
}

function branch<T>(): Branch<T> {
  return { named: new Map(), one: undefined, here: [], rest: [] };
}
