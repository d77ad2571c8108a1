// A gap record with one source, and calls for the events of the source. Time stands still until it is advanced.
import { cpSync } from "node:fs";
import { gapFolder } from "../../src/agent/gaps/gap-file.ts";
import { type GapRecord, openGapRecord } from "../../src/agent/gaps/gap-record.ts";
import { type SourceGaps, sourceGaps } from "../../src/agent/gaps/source-gaps.ts";
import { type EpochMicros, epochMicros } from "../../src/core/point.ts";
import type { ReadPlace } from "../../src/core/reading.ts";
import type { Reading, Source, TagGap, TagId } from "../../src/core/source.ts";
import { ManualClock, type TestRuntime, testRuntime } from "./runtime.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface GapStory {
  readonly clock: ManualClock;
  readonly runtime: TestRuntime;
  readonly folder: string;
  record: GapRecord;
  source: SourceGaps;
  /** Opens the record as the next run of the agent does. `killed`: the former run writes nothing more. */
  restart(options: { readonly killed: boolean; readonly afterMs: number }): Promise<void>;
  /** Delivers one reading with the current time. */
  read(): void;
  /** Advances time by `ms`. Returns the new time. */
  later(ms: number): Promise<EpochMicros>;
  /** The rows as text: source, cause, state, seconds since the start. */
  rows(): readonly string[];
  end(): Promise<void>;
}

export const gapSource = { name: "line", tags: 10_000 };
/** The place of the readings that `read` delivers. */
export const polledPlace: ReadPlace = { tag: 0 as TagId, captures: {}, address: "a" }; // the first tag
export const connected: Pick<Source, "retainedBy" | "recovery" | "polled"> = {};

/** Starts at 2026-01-01 with a source that is online and has just been read. */
export async function gapStory(dataDir: string): Promise<GapStory> {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const left: Pick<GapStory, "source" | "record">[] = [];
  let runs = 0;
  let folder = gapFolder(dataDir);
  const start = clock.now();
  const at = (time: number | undefined) => (time === undefined ? "" : String(Math.round((time - start) / 1e5) / 10));
  const open = async () => {
    const record = await openGapRecord(folder, [gapSource.name], runtime);
    const source = sourceGaps(record, gapSource, runtime);
    source.names((tag) => `tag${tag}`);
    return { record, source };
  };
  const story: GapStory = {
    clock,
    runtime,
    get folder() {
      return folder;
    },
    ...(await open()),
    async restart({ killed, afterMs }) {
      if (killed) {
        // Whatever the former run still writes goes to a folder that is no longer read.
        left.push({ source: story.source, record: story.record });
        const next = gapFolder(`${dataDir}/run${++runs}`);
        cpSync(folder, next, { recursive: true });
        folder = next;
      } else await story.end();
      await clock.advance(afterMs);
      Object.assign(story, await open());
    },
    read: () => story.source.delivered({ readings: [readingAt(clock.now())] }),
    async later(ms) {
      await clock.advance(ms);
      return clock.now();
    },
    rows: () =>
      story.record
        .list(0, 100)
        .gaps.toReversed()
        .map(({ source, cause, state, from, to, tags, inputs, outcome }) =>
          [
            source ?? "buffer",
            cause,
            `${at(from)}-${at(to)}`,
            inputs.length === 0 ? `all ${tags}` : inputs.slice(0, 3).join("+"),
            state,
            ...(outcome === undefined ? [] : [outcome]),
          ].join(" "),
        ),
    async end() {
      for (const { source, record } of [story, ...left.splice(0)]) {
        source[Symbol.dispose]();
        await record[Symbol.asyncDispose]();
      }
    },
  };
  story.source.online(connected);
  story.read();
  return story;
}

export function readingAt(time: EpochMicros): Reading {
  return {
    ...polledPlace,
    value: 1,
    time: epochMicros(time),
    clock: "agent",
    quality: "good",
    historical: false,
  };
}

/** Runs a story in a temporary folder. */
export async function withStory(act: (story: GapStory) => Promise<void>): Promise<void> {
  using folder = temporaryFolder();
  const story = await gapStory(folder.path);
  try {
    await act(story);
  } finally {
    await story.end();
  }
}

/** What a driver reports about an interruption of a tag. The tag's Input ID is `tag<number>`. */
export function tagGap(tag: number, state: TagGap["state"], from: number, to: number, reason = "?"): TagGap {
  return {
    tag: tag as TagId, // an index
    captures: {},
    from: epochMicros(from),
    to: epochMicros(to),
    cause: "interruption",
    state,
    reason,
  };
}
