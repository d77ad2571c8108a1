// Server-sent events: one view of the agent a second for each open page, of the rows that the page shows.
import type { ServerResponse } from "node:http";
import type { Status, StatusPart } from "../agent/status/status.ts";
import type { Clock } from "../core/runtime.ts";
import { type Figure, figures, type History, type Samples } from "./history.ts";
import { type TagQuery, type TagView, viewTags } from "./tag-view.ts";

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
  return withHistory({ status: rest, tags: viewTags(all, query) }, history);
}

/** The same of a status that has no other tags than those of the page. */
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

/** Writes views, of which the first is to have the history, until the page is gone or `signal` aborts. A page that does not read is skipped, not queued for. */
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
