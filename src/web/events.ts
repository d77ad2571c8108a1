// Views for the page, once or as server-sent events: the status, and the tag rows that match and are on screen.
import type { ServerResponse } from "node:http";
import type { Status, StatusPart, TagStatus } from "../agent/status/status.ts";
import type { Clock } from "../core/runtime.ts";
import { type Figure, figures, type History, type Samples } from "./history.ts";

export interface TagQuery {
  /** Every word must occur in source, input, address or quality, ignoring case. */
  readonly search: string;
  /** Index of the first row among the matches. */
  readonly first: number;
  readonly count: number;
}

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

/** The status without tags, and the tags on screen. */
export interface View {
  readonly status: Omit<Status, "tags">;
  readonly tags: TagView;
  /** Only in the first view of a stream; the page continues the history itself. */
  readonly history?: {
    readonly times: readonly number[];
    readonly figures: Readonly<Record<Figure, Samples>>;
    /** In the order of `tags.rows`. */
    readonly rows: readonly Samples[];
  };
}

export const viewEveryMs = 1_000;

export function viewOf(status: Status, query: TagQuery, history?: History): View {
  const { tags: all, ...rest } = status;
  return withHistory({ status: rest, tags: viewTags(all, query) }, history);
}

/** The same for a status that only has the tags of the page. */
export function viewOfPart({ status, tags: { total, first, rows } }: StatusPart, history?: History): View {
  return withHistory({ status, tags: { total, matching: total, first, rows } }, history);
}

function withHistory(view: View, history: History | undefined): View {
  if (!history) return view;
  const { tags } = view;
  return {
    ...view,
    history: {
      times: history.times,
      figures: Object.fromEntries(figures.map((figure) => [figure, history.figure(figure)])) as Record<Figure, Samples>, // keys are `figures`
      rows: tags.rows.map((tag) => history.tag(tag.input)),
    },
  };
}

/** Writes views, the first with history, until the page or `signal` ends. A page that does not read misses views. */
export async function streamViews(
  response: ServerResponse,
  look: (first: boolean) => View,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const ended = AbortSignal.any([signal, gone.signal]);
  let first = true;
  try {
    while (!ended.aborted) {
      if (!response.writableNeedDrain) {
        response.write(`data: ${JSON.stringify(look(first))}\n\n`);
        first = false;
      }
      await clock.sleep(viewEveryMs, ended).catch(() => {}); // an abort ends the loop above
    }
  } finally {
    response.end();
  }
}
