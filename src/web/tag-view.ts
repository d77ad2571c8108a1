// The part of all tags that a page shows: what matches its search, and of that the rows it has on screen. Pure.
import type { TagStatus } from "../agent/status/status.ts";

export interface TagQuery {
  /** Every word must be found in source, input, address or quality; case does not matter. */
  readonly search: string;
  /** Index of the first row among those that match. */
  readonly first: number;
  readonly count: number;
}

export interface TagView {
  readonly total: number;
  readonly matching: number;
  /** As asked for, or less where fewer match. */
  readonly first: number;
  readonly rows: readonly TagStatus[];
}

/** More rows than this fit on no screen. */
export const maxRows = 200;

export function parseTagQuery(parameters: URLSearchParams): TagQuery {
  const whole = (name: string, fallback: number, max: number) => {
    const value = Number(parameters.get(name) ?? Number.NaN);
    return Number.isSafeInteger(value) && value >= 0 ? Math.min(value, max) : fallback;
  };
  return {
    search: (parameters.get("search") ?? "").slice(0, 200),
    first: whole("first", 0, Number.MAX_SAFE_INTEGER),
    count: whole("count", 50, maxRows),
  };
}

export function viewTags(tags: readonly TagStatus[], query: TagQuery): TagView {
  const words = query.search.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = words.length === 0 ? tags : tags.filter((tag) => matches(tag, words));
  const first = Math.min(query.first, Math.max(0, matching.length - query.count));
  return {
    total: tags.length,
    matching: matching.length,
    first,
    rows: matching.slice(first, first + query.count),
  };
}

function matches(tag: TagStatus, words: readonly string[]): boolean {
  const text = `${tag.source} ${tag.input} ${tag.address} ${tag.quality ?? "none"}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
