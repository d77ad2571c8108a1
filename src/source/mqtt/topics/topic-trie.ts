// Finds the filters that match a topic, however many filters there are. Pure.
//
// Filters without a wildcard stand in a map, by their text. The others form a tree of levels: at each level of a topic
// there are at most three ways on, the level itself, `+` and `#`. Rules of MQTT 5, 4.7: `#` also matches the level above
// it, `+` also an empty level, and a wildcard at the beginning matches no topic that begins with `$`.
/** Left out what it does not have: there may be 100,000 branches. */
interface Branch<T> {
  named?: Map<string, Branch<T>>;
  /** `+` */
  one?: Branch<T>;
  /** What stands for filters that end here. */
  here?: T[];
  /** What stands for filters that end in `#` from here on. */
  rest?: T[];
}

/** Characters of topics that are worth remembering: of 65,535, as the protocol allows, there could be gigabytes. */
export const maxTopic = 1_024;

/** Topic filters and what stands for each. */
export class TopicTrie<T> {
  /** By filter: what stands for it, and what else does, if there is more. */
  readonly #exact = new Map<string, T>();
  readonly #others = new Map<string, T[]>();
  #root: Branch<T> | undefined;

  /** `filter` without `$share/<group>/`. */
  insert(filter: string, value: T): void {
    if (!/[+#]/.test(filter)) {
      if (!this.#exact.has(filter)) this.#exact.set(filter, value);
      else pushed(this.#others, filter, value);
      return;
    }
    let at = (this.#root ??= {});
    for (const level of filter.split("/")) {
      if (level === "#") {
        (at.rest ??= []).push(value);
        return;
      }
      at = level === "+" ? (at.one ??= {}) : named(at, level);
    }
    (at.here ??= []).push(value);
  }

  /** What stands for the filters that match `topic`, in no particular order. */
  match(topic: string): T[] {
    const found: T[] = [];
    const exact = this.#exact.get(topic);
    if (exact !== undefined) found.push(exact, ...(this.#others.get(topic) ?? []));
    const root = this.#root;
    if (!root) return found;
    const levels = topic.split("/");
    if (levels[0]?.startsWith("$")) {
      const first = root.named?.get(levels[0]);
      if (first) collect(first, levels, 1, found);
    } else collect(root, levels, 0, found);
    return found;
  }
}

function collect<T>(at: Branch<T>, levels: readonly string[], depth: number, found: T[]): void {
  for (const value of at.rest ?? []) found.push(value);
  const level = levels[depth];
  if (level === undefined) {
    for (const value of at.here ?? []) found.push(value);
    return;
  }
  const next = at.named?.get(level);
  if (next) collect(next, levels, depth + 1, found);
  if (at.one) collect(at.one, levels, depth + 1, found);
}

function named<T>(at: Branch<T>, level: string): Branch<T> {
  const branches = (at.named ??= new Map());
  const known = branches.get(level);
  if (known) return known;
  const made: Branch<T> = {};
  branches.set(level, made);
  return made;
}

function pushed<T>(lists: Map<string, T[]>, key: string, value: T): void {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** Those of `filters` that no other one of them covers, each once. */
export function minimalCover(filters: Iterable<string>): string[] {
  const distinct = [...new Set(filters)];
  const root = tree(distinct);
  return distinct.filter((filter) => !isCovered(root, splitFilter(filter), 0, true));
}

/** Tells of a filter whether one of `wide` matches every topic that it matches. */
export function coverage(wide: Iterable<string>): (filter: string) => boolean {
  const root = tree(wide);
  return (filter) => isCovered(root, splitFilter(filter), 0, false);
}

/**
 * Levels of a filter. A shared subscription has its group in front of the first level, since it covers, and is covered
 * by, filters of its own group alone.
 */
function splitFilter(filter: string): readonly string[] {
  const levels = filter.split("/");
  return levels[0] === "$share" ? [`$share/${levels[1]}`, ...levels.slice(2)] : ["", ...levels];
}

interface Node {
  readonly children: Map<string, Node>;
  ends: boolean;
}

function node(): Node {
  return { children: new Map(), ends: false };
}

function tree(filters: Iterable<string>): Node {
  const root = node();
  for (const filter of filters) {
    let at = root;
    for (const level of splitFilter(filter)) {
      const next = at.children.get(level) ?? node();
      at.children.set(level, next);
      at = next;
    }
    at.ends = true;
  }
  return root;
}

/** Whether a filter below `at` covers `levels` from `depth` on. `same`: one that is the same level by level does not count. */
function isCovered(at: Node, levels: readonly string[], depth: number, same: boolean): boolean {
  const level = levels[depth];
  if (level === undefined) return (at.ends && !same) || at.children.has("#");
  if (level === "#") return !same && at.children.has("#");
  // Groups are no levels, and a leading wildcard matches nothing that begins with `$`.
  const wildcards = depth > 0 && !(depth === 1 && level.startsWith("$"));
  if (wildcards && at.children.has("#")) return true;
  const exact = at.children.get(level);
  if (exact && isCovered(exact, levels, depth + 1, same)) return true;
  const one = wildcards && level !== "+" ? at.children.get("+") : undefined;
  return one !== undefined && isCovered(one, levels, depth + 1, false);
}
