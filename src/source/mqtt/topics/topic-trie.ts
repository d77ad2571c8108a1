// Finds the filters that match a topic or cover another filter, with a cost independent of their number.
//
// The filters form a tree of levels. Each level of a topic has at most three branches: the level itself, `+` and `#`.
// Rules of MQTT 5, 4.7: `#` also matches the parent level, `+` also an empty level, and a leading wildcard matches no
// topic that starts with `$`.
import { createHash } from "node:crypto";
import type { TagId } from "../../../core/source.ts";

/** Unused fields are omitted, since there may be 100,000 branches. */
interface Branch<T> {
  /** Key: the level or `+`. */
  next?: Map<string, Branch<T>>;
  here?: T[];
  /** Values of filters with `#` after this level. */
  rest?: T[];
}

/** Longest topic that caches store, in characters. The protocol permits 65,535, which could fill gigabytes. */
export const maxTopic = 1_024;

export class TopicTrie<T> {
  readonly #root: Branch<T> = {};

  /** `filter`: without `$share/<group>/`. */
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

  /** Values of the filters that match `topic`. If it is a filter: of those that cover it. In no particular order. */
  match(topic: string): T[] {
    const found: T[] = [];
    collect(this.#root, topic.split("/"), 0, found);
    return found;
  }

  /** Whether some topic matches `filter` and a filter with a value that `counts`. */
  overlaps(filter: string, counts: (value: T) => boolean): boolean {
    return isShared(this.#root, filter.split("/"), 0, counts);
  }
}

function isShared<T>(at: Branch<T>, levels: readonly string[], depth: number, counts: (value: T) => boolean): boolean {
  // `#` stands for any number of levels.
  const level = levels[depth] ?? (levels.at(-1) === "#" ? "#" : undefined);
  const wildcards = depth > 0 || level?.startsWith("$") !== true;
  if (wildcards && at.rest?.some(counts)) return true;
  if ((level === undefined || level === "#") && at.here?.some(counts)) return true;
  if (level === undefined) return false;
  if (level !== "+" && level !== "#")
    return [level, ...(wildcards ? ["+"] : [])].some((name) => {
      const next = at.next?.get(name);
      return next !== undefined && isShared(next, levels, depth + 1, counts);
    });
  for (const [name, next] of at.next ?? [])
    if ((depth > 0 || !name.startsWith("$")) && isShared(next, levels, depth + 1, counts)) return true;
  return false;
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
  // For a filter as argument, `+` does not cover `#`.
  const one = wildcards && level !== "+" && level !== "#" ? at.next?.get("+") : undefined;
  if (one) collect(one, levels, depth + 1, found);
}

/** Distinct filters that no other one covers: a broker may send one copy per overlapping subscription. */
export function minimalCover(filters: Iterable<string>): string[] {
  const distinct = [...new Set(filters)];
  const covering = coveringIn(distinct);
  return distinct.filter((filter) => covering(filter).every((other) => other === filter));
}

/** Returns a test whether one of `wide` covers a filter. */
export function coverage(wide: Iterable<string>): (filter: string) => boolean {
  const covering = coveringIn(wide);
  return (filter) => covering(filter).length > 0;
}

/** Returns a lookup of the `filters` that cover a filter. A shared subscription is only covered within its group. */
export function coveringIn(filters: Iterable<string>): (filter: string) => readonly string[] {
  const groups = new Map<string, TopicTrie<string>>();
  for (const filter of filters) {
    const { group, pattern } = filterParts(filter);
    const trie = groups.get(group) ?? new TopicTrie();
    groups.set(group, trie);
    trie.insert(pattern, filter);
  }
  return (filter) => {
    const { group, pattern } = filterParts(filter);
    return groups.get(group)?.match(pattern) ?? [];
  };
}

/** `group`: the beginning of a shared subscription, `$share/<group>/`; else empty. */
export function filterParts(filter: string): { readonly group: string; readonly pattern: string } {
  const group = /^\$share\/[^/]*\//.exec(filter)?.[0] ?? "";
  return { group, pattern: filter.slice(group.length) };
}

// Filters that overlap without one covering the other, such as `a/+/c` and `+/b/c`: an MQTT 5 broker may send a message
// that both match once for each. Each such filter gets a subscription identifier, with which the broker marks the copies.
// A tag then reads the copy of the one filter that carries it:
//
//   tags                  a/+/c                    +/b/c
//   copies of a/b/c       identifier of a/+/c      identifier of +/b/c

/** The filters that share topics with another one of them. */
export function overlappingFilters(filters: readonly string[]): ReadonlySet<string> {
  const trie = new TopicTrie<string>();
  for (const filter of filters) trie.insert(filterParts(filter).pattern, filter);
  return new Set(filters.filter((filter) => trie.overlaps(filterParts(filter).pattern, (other) => other !== filter)));
}

/**
 * Depends on the filter only, since the broker marks messages that it keeps for a session with the identifiers of an
 * earlier connection. Two filters with one identifier are unlikely, and would cost a repeated value, not a lost one.
 */
export function identifierOf(filter: string): number {
  return (createHash("sha256").update(filter).digest().readUInt32BE() & 0xfff_fffe) + 1;
}

/** Decides which tags read a copy of a message. Costs nothing while the broker marks no copies. */
export class SubscriptionCopies {
  readonly #filterOf: (tag: TagId) => string;
  #before: readonly string[] = [];
  #now: readonly string[] = [];
  #covering: readonly ReturnType<typeof coveringIn>[] | undefined;
  readonly #carriers = new Map<TagId, ReadonlySet<number>>();

  constructor(filterOf: (tag: TagId) => string) {
    this.#filterOf = filterOf;
  }

  /**
   * Call with all filters that the broker has for certain: those of a resumed session, then those granted, before others
   * are unsubscribed. A tag that none of them carries reads every copy: a value may come twice, but none is lost.
   */
  granted(filters: readonly string[]): void {
    this.#before = this.#now;
    this.#now = filters;
    this.#covering = undefined;
    this.#carriers.clear();
  }

  /** `identifiers`: of the subscriptions for which the broker sent this copy. */
  isFor(tag: TagId, identifiers: readonly number[]): boolean {
    let carriers = this.#carriers.get(tag);
    if (!carriers) this.#carriers.set(tag, (carriers = this.#find(this.#filterOf(tag))));
    return carriers.size === 0 || identifiers.some((identifier) => carriers.has(identifier));
  }

  /** Messages that the broker has kept may come for the filter that carried the tag before. */
  #find(filter: string): ReadonlySet<number> {
    this.#covering ??= [coveringIn(this.#before), coveringIn(this.#now)];
    const [[before] = [], now = []] = this.#covering.map((covering) => covering(filter).toSorted());
    const carriers = before !== undefined && now.includes(before) ? [before] : [before, now[0]];
    return new Set(carriers.flatMap((carrier) => (carrier === undefined ? [] : [identifierOf(carrier)])));
  }
}
