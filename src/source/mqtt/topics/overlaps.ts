// Filters that overlap without one covering the other, such as `a/+/c` and `+/b/c`: an MQTT 5 broker may send a message
// that both match once for each. Each such filter gets a subscription identifier, with which the broker marks the copies.
// A tag then reads the copy of the one filter that carries it:
//
//   tags                  a/+/c                    +/b/c
//   copies of a/b/c       identifier of a/+/c      identifier of +/b/c
import { createHash } from "node:crypto";
import type { TagId } from "../../../core/source.ts";
import { coveringIn, filterParts, TopicTrie } from "./topic-trie.ts";

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
