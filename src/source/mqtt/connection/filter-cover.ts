// The fewest topic filters that bring every message the configured ones ask for, each once. Pure.
//
// With MQTT 5 a broker may send one copy of a message for each overlapping subscription; `a/#` makes `a/+/x` superfluous.

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
