// The views of the page, once or as server-sent events: the status, and the rows of the table of tags with its search,
// filters, order and the part that is on screen.

import type { ServerResponse } from "node:http";
import type { Status, StatusPart, TagStatus } from "../agent/status/status.ts";
import { commandLine } from "../core/errors.ts";
import type { Clock } from "../core/runtime.ts";

export interface TagQuery {
  /** Every word must occur in source, input, address or quality, ignoring case. */
  readonly search: string;
  /** Only tags of this source; empty: of all. */
  readonly source: string;
  /** Only tags in this state; undefined: in any. `problem`: all but `good`. */
  readonly state: TagStateFilter | undefined;
  readonly sort: TagSort;
  /** Index of the first row among the matches. */
  readonly first: number;
  readonly count: number;
}

const stateFilters = ["problem", "good", "uncertain", "bad", "none"] as const;
type TagStateFilter = (typeof stateFilters)[number];
/** `order`: that of the configuration. `age`: oldest reading first. `state`: worst first. */
const sorts = ["order", "name", "age", "state"] as const;
type TagSort = (typeof sorts)[number];

export interface TagView {
  readonly total: number;
  readonly matching: number;
  /** As requested, or less with fewer matches. */
  readonly first: number;
  readonly rows: readonly TagStatus[];
}

/** More rows fit on no screen. */
export const maxRows = 200;

export function parseTagQuery(parameters: URLSearchParams): TagQuery {
  const whole = (name: string, fallback: number, max: number) => {
    const value = Number(parameters.get(name) ?? Number.NaN);
    return Number.isSafeInteger(value) && value >= 0 ? Math.min(value, max) : fallback;
  };
  const text = (name: string) => (parameters.get(name) ?? "").slice(0, 200);
  return {
    search: text("search"),
    source: text("source"),
    state: stateFilters.find((state) => state === text("state")),
    sort: sorts.find((sort) => sort === text("sort")) ?? "order",
    first: whole("first", 0, Number.MAX_SAFE_INTEGER),
    count: whole("count", 50, maxRows),
  };
}

/** Whether the rows are those of the configuration in its order, so that only the visible ones need to be built. */
export function isPlain({ search, source, state, sort }: TagQuery): boolean {
  return search.trim() === "" && source === "" && state === undefined && sort === "order";
}

export function viewTags(tags: readonly TagStatus[], query: TagQuery): TagView {
  const words = query.search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = isPlain(query)
    ? tags
    : sorted(
        tags.filter((tag) => matches(tag, query, words)),
        query.sort,
      );
  const first = Math.min(query.first, Math.max(0, found.length - query.count));
  return { total: tags.length, matching: found.length, first, rows: found.slice(first, first + query.count) };
}

function matches(tag: TagStatus, { source, state }: TagQuery, words: readonly string[]): boolean {
  const quality = tag.quality ?? "none";
  if (source !== "" && tag.source !== source) return false;
  if (state !== undefined && (state === "problem" ? quality === "good" : quality !== state)) return false;
  if (words.length === 0) return true;
  const text = `${tag.source} ${tag.input} ${tag.address} ${quality}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

const severity = { bad: 0, uncertain: 1, none: 2, good: 3 } as const;

function sorted(tags: TagStatus[], sort: TagSort): readonly TagStatus[] {
  switch (sort) {
    case "order":
      return tags;
    case "name":
      // By code unit: a locale costs a hundred times as much.
      return tags.sort((a, b) => (a.input < b.input ? -1 : a.input > b.input ? 1 : 0));
    case "age":
      return tags.sort((a, b) => (a.time ?? 0) - (b.time ?? 0));
    case "state":
      return tags.sort((a, b) => severity[a.quality ?? "none"] - severity[b.quality ?? "none"]);
  }
}

/** The status without tags, and the tags on screen. */
export interface View {
  readonly status: Omit<Status, "tags">;
  readonly tags: TagView;
  /** The command line of each problem in `status.overall` that has a command, by its text. */
  readonly commands: Readonly<Record<string, string>>;
}

export function viewOf(status: Status, query: TagQuery, configFile: string | undefined): View {
  const { tags: all, ...rest } = status;
  return { status: rest, tags: viewTags(all, query), commands: commandsOf(rest, configFile) };
}

/** The same for a status that only has the tags of the page. */
export function viewOfPart(part: StatusPart, configFile: string | undefined): View {
  const { status, tags } = part;
  const { total, first, rows } = tags;
  return { status, tags: { total, matching: total, first, rows }, commands: commandsOf(status, configFile) };
}

function commandsOf({ overall }: Pick<Status, "overall">, configFile: string | undefined): View["commands"] {
  return Object.fromEntries(
    overall.problems.flatMap(({ text, command }) => (command ? [[text, commandLine(command, configFile)]] : [])),
  );
}

const viewEveryMs = 1_000;
/** Interval of views for which all of more than `manyTags` tags are filtered or sorted. */
const manyEveryMs = 3_000;
const manyTags = 1_000;

export function intervalOf(query: TagQuery, { tags }: View): number {
  return tags.total > manyTags && !isPlain(query) ? manyEveryMs : viewEveryMs;
}

/** Writes views until the page or `signal` ends. A page that does not read misses views. */
export async function streamViews(
  response: ServerResponse,
  look: () => View,
  everyMs: (view: View) => number,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const ended = AbortSignal.any([signal, gone.signal]);
  let waitMs = viewEveryMs;
  try {
    while (!ended.aborted) {
      if (!response.writableNeedDrain) {
        const view = look();
        response.write(`data: ${JSON.stringify(view)}\n\n`);
        waitMs = everyMs(view);
      }
      await clock.sleep(waitMs, ended).catch(() => {}); // an abort ends the loop above
    }
  } finally {
    response.end();
  }
}
