// The gap record of an agent, in memory and on disk: every interval in which tags were not recorded.
import { epochMicros } from "../../core/point.ts";
import { checkGridMs, type MetricDeclaration, type Runtime } from "../../core/runtime.ts";
import { repeat } from "../../lib/flow/repeat.ts";
import type { Gap, GapEvent, GapList, GapSummary } from "./gap.ts";
import { type AccountedLosses, GapFile, type GapLine, readGapFolder, signOfLife } from "./gap-file.ts";
import { type FirstEvent, gapRows, isFinal, isOutage, type NewGap, newest } from "./gap-rows.ts";

const metrics = {
  gaps: { name: "gap_intervals_total", help: "Intervals in which tags were not recorded", labels: ["source", "cause"] },
  open: { name: "gap_open", help: "Intervals in which tags are not recorded, going on now", labels: ["source"] },
  lost: {
    name: "gap_lost_seconds_total",
    help: "Seconds in which tags were not recorded and that were not filled later",
    labels: ["source", "cause"],
  },
} as const satisfies Record<string, MetricDeclaration>;

/** Interval of the checks and of writing changes. */
const everyMs = 1_000;

/** Disposing it writes the pending changes and a final sign of life. */
export type GapRecord = Awaited<ReturnType<typeof openGapRecord>>;

/** Resolves once the record is read. `sources`: all configured sources. Never rejects: failed writes are repeated. */
export async function openGapRecord(folder: string, sources: readonly string[], runtime: Runtime) {
  const file = new GapFile(folder);
  const { gaps, losses: accounted, life: former } = await readGapFolder(folder);
  const rows = gapRows(gaps);
  /** Up to when each source is accounted for, by this run and the previous one. */
  const life = signOfLife(former, runtime.clock);
  let losses = accounted;
  const ticks = new Set<() => void>();
  let saving: Promise<boolean> = Promise.resolve(true);
  let lossesChanged = false;
  let unwritable = false;

  /** Ends the rows that the previous agent left open and that no source continues. */
  function endLeftOver(): void {
    const end = life.former?.time ?? 0;
    for (const gap of rows.all())
      if (gap.source !== undefined && !sources.includes(gap.source)) sourceRemoved(gap.source);
      else if (gap.to === undefined && !isOutage(gap)) {
        // The device may have kept what could not be stored: the next connection decides.
        const event = gap.cause === "buffer" ? "connected" : "ends";
        advance(gap.id, event, { to: epochMicros(Math.max(gap.from, end)) });
      }
  }

  function settle(gap: Gap): void {
    const { source = "buffer", cause, state, missingMs = 0 } = gap;
    if (state !== "filled") runtime.metrics.counter(metrics.lost).add(missingMs / 1_000, { source, cause });
    rows.join(gap);
  }

  /** Checks and writes once a second, separately, so that a slow disk does not delay the checks. */
  function work(): readonly AsyncDisposable[] {
    const failure = "maintenance of the gap record failed";
    const each = { everyMs, gridMs: checkGridMs, first: "now", failure } as const;
    const failed = (error: unknown) => runtime.log.error({ part: "gaps", err: error }, failure);
    const check = async () => {
      for (const act of ticks) act();
      measure();
    };
    return [check, () => saveAndSign(false)].map((act) => repeat(() => act().catch(failed), each, runtime));
  }

  function measure(): void {
    const open = new Map<string, number>([...life.running.keys()].map((source) => [source, 0]));
    for (const { to, source } of rows.all())
      if (to === undefined && source !== undefined) open.set(source, (open.get(source) ?? 0) + 1);
    for (const [source, n] of open) runtime.metrics.gauge(metrics.open).set(n, { source });
  }

  async function saveNow(): Promise<boolean> {
    const ids = rows.takeChanged();
    if (ids.length === 0 && !lossesChanged) return true;
    const lines: GapLine[] = ids.map((id) => {
      const gap = rows.get(id);
      return gap ? { gap } : { gone: id };
    });
    if (lossesChanged) lines.push({ losses });
    lossesChanged = false;
    if (await write(() => file.append(lines, all))) return true;
    rows.giveBack(ids);
    lossesChanged = true;
    return false;
  }

  /** Takes the sign before saving; otherwise it could cover rows that are not on disk. */
  async function saveAndSign(stopped: boolean): Promise<void> {
    const sign = life.next(stopped);
    const saved = await save();
    if (sign && saved) await write(() => file.alive(sign));
  }

  function all(): readonly GapLine[] {
    return [{ losses }, ...rows.all().map((gap) => ({ gap }))];
  }

  /** False: the disk rejects writes at present. */
  async function write(act: () => Promise<void>): Promise<boolean> {
    const { log } = runtime;
    try {
      await act();
      if (unwritable) log.info({ part: "gaps" }, "the gap record can be written again");
      unwritable = false;
      return true;
    } catch (error) {
      if (!unwritable) log.warn({ part: "gaps", err: error }, "the gap record cannot be written for now");
      unwritable = true;
      return false;
    }
  }

  /** Abandons the open gaps of a source that was removed from the configuration. */
  function sourceRemoved(source: string): void {
    life.removed(source);
    const outcome = "the source is not in the configuration any more";
    for (const { id, to = runtime.clock.now() } of of(source)) advance(id, "abandoned", { to, outcome });
  }

  /** Rows of a source, oldest first. */
  function of(source: string): readonly Gap[] {
    return rows.all().filter((gap) => gap.source === source);
  }

  /**
   * Applies `event` and `changes` to the row. Does nothing if `gapLife` has no entry for the event and the row's state.
   */
  function advance(id: number, event: GapEvent | undefined, changes: Partial<NewGap>): void {
    const before = rows.get(id);
    const after = rows.change(id, changes, event);
    if (before && after && isFinal(after) && !isFinal(before)) settle(after);
  }

  /** Whether all changes so far are on disk. Never rejects: a failed write is logged and repeated. */
  function save(): Promise<boolean> {
    saving = saving.then(saveNow);
    return saving;
  }

  endLeftOver();
  await write(() => file.rewrite(all()));
  const working = work();

  return {
    /** Up to when each source is accounted for, by this run and the previous one. */
    life,
    sourceRemoved,
    of,
    advance,
    save,
    /** Points lost from the buffer that rows account for. */
    get losses(): AccountedLosses {
      return losses;
    },
    set losses(accounted: AccountedLosses) {
      losses = accounted;
      lossesChanged = true;
    },
    /** Calls `act` once a second until the result is disposed. */
    eachSecond(act: () => void): Disposable {
      ticks.add(act);
      return { [Symbol.dispose]: () => void ticks.delete(act) };
    },
    get: (id: number): Gap | undefined => rows.get(id),
    add(event: FirstEvent, gap: NewGap): number {
      const { cause, source = "buffer" } = gap;
      const added = rows.add(event, gap, runtime.clock.now());
      runtime.metrics.counter(metrics.gaps).add(1, { source, cause });
      if (isFinal(added)) settle(added);
      return added.id;
    },
    /** Changes a row but not its state. Does nothing if the row does not exist. */
    change(id: number, changes: Partial<NewGap>): void {
      advance(id, undefined, changes);
    },
    /** Rows that end at `since` or later, newest first. */
    list(since: number, most: number): GapList {
      const gaps = rows.all();
      const oldest = gaps.reduce((least, { from }) => Math.min(least, from), Number.POSITIVE_INFINITY);
      const time = runtime.clock.now();
      return { time, ...newest(gaps, since, most), ...(gaps.length > 0 && { since: epochMicros(oldest) }) };
    },
    summary: (): GapSummary => rows.summary(runtime.clock.now()),
    async [Symbol.asyncDispose](): Promise<void> {
      await Promise.all(working.map((each) => each[Symbol.asyncDispose]()));
      await saveAndSign(true);
    },
  };
}

/** A disk that has not answered for this long counts as hung, and a process that has not run as suspended. */
export const hungAfterMs = 5_000;

/**
 * Saves the record for a source that waits. Resolves with true once all rows are on disk. False if the disk rejects the
 * write or hangs for 5 s. Never rejects.
 */
export function promptSave(record: Pick<GapRecord, "save">, source: string, { clock, log }: Runtime) {
  /** The disk has not answered a write. Nothing waits for it until it has. */
  let hung = false;

  return async (): Promise<boolean> => {
    const saving = record.save();
    // `saving` waits for the hung write before it.
    if (hung) return false;
    const waiting = new AbortController();
    const tooLong = clock.sleep(hungAfterMs, waiting.signal).catch(() => {});
    const answered = await Promise.race([saving, tooLong.then(() => undefined)]);
    waiting.abort();
    if (answered !== undefined) return answered;
    hung = true;
    log.warn({ part: "gaps", source }, "the disk of the gap record does not answer");
    void saving.then(() => {
      hung = false;
    });
    return false;
  };
}
