// Views for the page, once or as server-sent events: the status, and the rows of the table of tags.
import type { ServerResponse } from "node:http";
import type { Status, StatusPart } from "../agent/status/status.ts";
import { commandLine } from "../core/errors.ts";
import type { Clock } from "../core/runtime.ts";
import { isPlain, type TagQuery, type TagView, viewTags } from "./tag-view.ts";

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
