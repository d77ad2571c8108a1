// Server-sent events: one view of the agent a second for each open page, of the rows that the page shows.
import type { ServerResponse } from "node:http";
import type { Status } from "../agent/status.ts";
import type { Clock } from "../core/runtime.ts";
import type { Figure, History, Samples } from "./history.ts";
import { figures } from "./history.ts";
import type { TagQuery, TagView } from "./tag-view.ts";
import { viewTags } from "./tag-view.ts";

/** What a page gets: everything of the status but the tags, and the tags it shows. */
export interface View {
  readonly status: Omit<Status, "tags">;
  readonly tags: TagView;
  /** With the first view of a stream only; the page goes on by itself from there. */
  readonly history?: {
    readonly times: readonly number[];
    readonly figures: Readonly<Record<Figure, Samples>>;
    /** As `tags.rows`. */
    readonly rows: readonly Samples[];
  };
}

export const viewEveryMs = 1_000;

export function viewOf(status: Status, query: TagQuery, history?: History): View {
  const { tags: all, ...rest } = status;
  const tags = viewTags(all, query);
  if (!history) return { status: rest, tags };
  return {
    status: rest,
    tags,
    history: {
      times: history.times,
      figures: Object.fromEntries(figures.map((figure) => [figure, history.figure(figure)])) as Record<Figure, Samples>, // keys are `figures`
      rows: tags.rows.map((tag) => history.tag(tag.input)),
    },
  };
}

/** Writes views until the page is gone or `signal` aborts. A page that does not read is skipped, not queued for. */
export async function streamViews(
  response: ServerResponse,
  query: TagQuery,
  snapshot: () => Status,
  history: History,
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
        const view = viewOf(snapshot(), query, first ? history : undefined);
        response.write(`data: ${JSON.stringify(view)}\n\n`);
        first = false;
      }
      await clock.sleep(viewEveryMs, ended).catch(() => {}); // an abort ends the loop above
    }
  } finally {
    response.end();
  }
}
