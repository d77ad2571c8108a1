// Finds the filters that match a topic, or that cover another filter, however many filters there are. Pure.
//
// They form a tree of levels: at each level of a topic there are at most three ways on, the level itself, `+` and `#`. Rules of
// MQTT 5, 4.7: `#` also matches the level above it, `+` also an empty level, and a wildcard at the beginning matches no topic
// that begins with `$`.

/** Left out what it does not have: there may be 100,000 branches. */
interface Branch<T> {
  /** By the level, or `+`. */
  next?: Map<string, Branch<T>>;
  /** What stands for filters that end here. */
  here?: T[];
  /** What stands for filters that end in `#` from here on. */
  rest?: T[];
}

/** Characters of topics that are worth remembering: of 65,535, as the protocol allows, there could be gigabytes. */
export const maxTopic = 1_024;

/** Topic filters and what stands for each. */
export class TopicTrie<T> {
  readonly #root: Branch<T> = {};

  /** `filter` without `$share/<group>/`. */
  insert(filter: string, value: T): void {
    let at = this.#root;
    for (const level of filter.split("/")) {
      if (level === "#") {
        (at.rest ??= []).push(value);
        return;
      }
      const next = (at.next ??= new Map<string, Branch<T>>());
      const branch = next.get(level) ?? {};
      next.set(level, branch);
      at = branch;
    }
    (at.here ??= []).push(value);
  }

  /** What stands for the filters that match `topic`, or every topic that `topic` matches if it is a filter; in no particular order. */
  match(topic: string): T[] {
    const found: T[] = [];
    collect(this.#root, topic.split("/"), 0, found);
    return found;
  }
}

function collect<T>(at: Branch<T>, levels: readonly string[], depth: number, found: T[]): void {
  const level = levels[depth];
  const wildcards = depth > 0 || level?.startsWith("$") !== true;
  if (at.rest && wildcards) for (const value of at.rest) found.push(value);
  if (level === undefined) {
    for (const value of at.here ?? []) found.push(value);
    return;
  }
  const next = at.next?.get(level);
  if (next) collect(next, levels, depth + 1, found);
  // Of a filter, `+` does not stand for `#`.
  const one = wildcards && level !== "+" && level !== "#" ? at.next?.get("+") : undefined;
  if (one) collect(one, levels, depth + 1, found);
}

/**
 * Those of `filters` that no other one of them covers, each once: with MQTT 5 a broker may send one copy of a message for each
 * overlapping subscription; `a/#` makes `a/+/x` superfluous.
 */
export function minimalCover(filters: Iterable<string>): string[] {
  const distinct = [...new Set(filters)];
  const covering = coveringIn(distinct);
  return distinct.filter((filter) => covering(filter).every((other) => other === filter));
}

/** Tells of a filter whether one of `wide` matches every topic that it matches. */
export function coverage(wide: Iterable<string>): (filter: string) => boolean {
  const covering = coveringIn(wide);
  return (filter) => covering(filter).length > 0;
}

/** Tells of a filter which of `filters` cover it: of a shared subscription those of its own group alone. */
function coveringIn(filters: Iterable<string>): (filter: string) => readonly string[] {
  const groups = new Map<string, TopicTrie<string>>();
  for (const filter of filters) {
    const [group, pattern] = groupOf(filter);
    const trie = groups.get(group) ?? new TopicTrie();
    groups.set(group, trie);
    trie.insert(pattern, filter);
  }
  return (filter) => {
    const [group, pattern] = groupOf(filter);
    return groups.get(group)?.match(pattern) ?? [];
  };
}

function groupOf(filter: string): readonly [group: string, pattern: string] {
  const group = /^\$share\/[^/]*\//.exec(filter)?.[0] ?? "";
  return [group, filter.slice(group.length)];
}
