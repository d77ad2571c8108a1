// The gap record on disk. All files can be read while an agent runs, and after it was killed at any moment.
// - `record.ndjson` has a line for each change; the last line of a row is its current state.
// - `alive.json` and `alive-2.json` are the latest signs of life, written in turn.
// A sign of life is overwritten in place if its length is unchanged. That writes one disk block instead of eight for a
// new file and its name. If a power cut tears it, the other one, 10 s older, is valid. If the length differs, the file
// is replaced, so that a full disk keeps the last sign.
import { mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import { writeAtomically } from "../../lib/files/atomic-file.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { type Gap, gapSchema } from "./gap.ts";

/** An interval may grow. This records how many of its points are accounted for, and in which row. */
const lastInterval = z.object({ number: z.int(), points: z.int(), row: z.int(), to: z.number().optional() });
const line = z.union([
  z.object({ gap: gapSchema }),
  /** A row that was merged into another, or was too old. */
  z.object({ gone: z.int() }),
  /** Points lost from the buffer that rows account for, by reason, with the last interval. */
  z.object({ losses: z.record(z.string(), z.object({ points: z.int(), last: lastInterval.optional() })) }),
]);
export type GapLine = z.output<typeof line>;
export type AccountedLosses = Extract<GapLine, { readonly losses: unknown }>["losses"];

const life = z.object({
  time: z.int().transform(epochMicros),
  /** Whether the agent shut down properly. */
  stopped: z.boolean(),
  /** The monotonic clock at `time`, in milliseconds. All processes share it until the machine restarts. */
  monotonic: z.number().optional(),
  /** The sign of life with the greater number is the later one. Even numbers go to `alive.json`. */
  turn: z.int().optional(),
  /** Up to this time, each source is recorded or has a row. */
  sources: z.record(z.string(), z.int().transform(epochMicros)),
});
export type Life = z.output<typeof life>;

const lifeFiles = ["alive.json", "alive-2.json"] as const;
/** Signs of life are padded to a multiple of this, so that they can be overwritten in place. */
const signBytes = 512;

export interface GapContent {
  readonly gaps: Map<number, Gap>;
  readonly losses: AccountedLosses;
  /** Undefined: no agent has run with this folder. */
  readonly life: Life | undefined;
}

/** The file is rewritten beyond twice the size of its last rewrite plus this many bytes. */
const spareBytes = 2 * 1024 * 1024;

export function gapFolder(dataDir: string): string {
  return join(dataDir, "gaps");
}

/** Skips unreadable lines and missing or damaged files. Never rejects for them. */
export async function readGapFolder(folder: string): Promise<GapContent> {
  const [text = "", ...signs] = await Promise.all(
    ["record.ndjson", ...lifeFiles].map((name) => readFile(join(folder, name), "utf8").catch(() => "")),
  );
  const [first, second] = signs.map((sign) => life.safeParse(parsed(sign)).data);
  const gaps = new Map<number, Gap>();
  let losses: AccountedLosses = {};
  for (const written of text.split("\n")) {
    const read = line.safeParse(parsed(written)).data;
    if (!read) continue;
    if ("gap" in read) gaps.set(read.gap.id, read.gap);
    else if ("gone" in read) gaps.delete(read.gone);
    else losses = read.losses;
  }
  return { gaps, losses, life: latest(first, second) };
}

/** Older versions know only `alive.json` and write it without a number. Such a file is always the latest one. */
function latest(first: Life | undefined, second: Life | undefined): Life | undefined {
  if (first && first.turn === undefined) return { ...first, turn: second?.turn ?? 1 };
  return (first?.turn ?? -1) > (second?.turn ?? -1) ? first : second;
}

/** Writes the folder. Calls must not overlap. */
export class GapFile {
  readonly #folder: string;
  #bytes = 0;
  #full = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Rewrites the whole file with mode 0600. Rejects with errors of the disk. */
  async rewrite(lines: readonly GapLine[]): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const text = textOf(lines);
    await writeAtomically(join(this.#folder, "record.ndjson"), text);
    this.#bytes = this.#full = Buffer.byteLength(text);
  }

  /** Appends changes and resolves once they survive a power cut. `all` gives the content for rewriting a large file. */
  async append(changes: readonly GapLine[], all: () => readonly GapLine[]): Promise<void> {
    if (this.#bytes > 2 * this.#full + spareBytes) return this.rewrite(all());
    const text = textOf(changes);
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await using file = await open(join(this.#folder, "record.ndjson"), "a", 0o600);
    // The leading line break separates this line from a torn write before it.
    await file.appendFile(`\n${text}`);
    await file.datasync();
    this.#bytes += Buffer.byteLength(text) + 1;
  }

  async alive(sign: Life): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = join(this.#folder, lifeFiles[(sign.turn ?? 0) % 2 === 0 ? 0 : 1]);
    const text = JSON.stringify(sign);
    const bytes = Buffer.alloc(Math.ceil(Buffer.byteLength(text) / signBytes) * signBytes, " ");
    bytes.write(text);
    {
      await using file = await open(path, "r+").catch(() => undefined);
      if (file && (await file.stat()).size === bytes.length) {
        await file.write(bytes, 0, bytes.length, 0);
        return await file.datasync();
      }
    }
    await writeAtomically(path, bytes);
  }
}

function textOf(lines: readonly GapLine[]): string {
  return lines.map((each) => `${JSON.stringify(each)}\n`).join("");
}

function parsed(text: string): unknown {
  return attempt(() => JSON.parse(text));
}

/** Interval of the signs of life. After a kill, the begin of a gap is known this exactly. */
const signEveryMs = 10_000;
/** The check runs once a second and may come this much early. */
const earlyMs = 500;
/** A clock that will be set is set within this time. */
const settingMs = 600_000;
/** A source that has not run for this long is forgotten. */
const forgottenUs = 90 * 86_400e6;

/**
 * Decides when a sign of life is due, and up to when it accounts for each source. `former`: the last one of the previous
 * agent.
 */
export function signOfLife(former: Life | undefined, clock: Clock) {
  const running = new Map<string, () => EpochMicros>();
  let givenAtMs = Number.NEGATIVE_INFINITY;
  const accounted = new Map(Object.entries(former?.sources ?? {}));
  let turn: number = former?.turn ?? 1;
  const beganAtMs = clock.monotonic();

  return {
    /** The last sign of life of the previous agent. Undefined: there was none. */
    former,
    /** Sources that account for their own time, with up to when they do. */
    running,
    /** Up to when the source was accounted for before its last stop. Undefined: a new source. */
    accountedUpTo: (source: string): EpochMicros | undefined => accounted.get(source),
    /** From now on the source accounts for its own time: up to what `upTo` returns. */
    runs(source: string, upTo: () => EpochMicros): void {
      running.set(source, upTo);
      // Otherwise, after an early kill, the next run would not know the source.
      this.renew();
    },
    /** The next check gives a sign, however recent the last one is. */
    renew(): void {
      givenAtMs = Number.NEGATIVE_INFINITY;
    },
    /** The source stops. It is accounted for up to `upTo`. */
    stopped(source: string, upTo: EpochMicros): void {
      running.delete(source);
      accounted.set(source, upTo);
    },
    removed(source: string): void {
      accounted.delete(source);
    },
    /** The next sign of life. It may be written once all current rows are on disk. Undefined: not due yet. */
    next(stopped: boolean): Life | undefined {
      const [time, nowMs] = [clock.now(), clock.monotonic()];
      if (!stopped && nowMs - givenAtMs < signEveryMs - earlyMs) return undefined;
      // A clock behind the last sign of life has not been set yet.
      if (time < (former?.time ?? 0) && nowMs - beganAtMs < settingMs) return undefined;
      givenAtMs = nowMs;
      // A clock that was set back leaves times that are ahead.
      for (const [source, upTo] of running) accounted.set(source, epochMicros(Math.min(time, upTo())));
      for (const [source, at] of accounted) if (at < time - forgottenUs) accounted.delete(source);
      // The final sign goes to `alive.json`, the only file that older versions read.
      turn += stopped && turn % 2 === 0 ? 2 : 1;
      return { time, stopped, monotonic: Math.round(nowMs), turn, sources: Object.fromEntries(accounted) };
    },
  };
}
