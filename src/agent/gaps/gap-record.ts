// The gap record of an agent, in memory and on disk: every interval in which tags were not recorded.
import { epochMicros } from "../../core/point.ts";
import { checkGridMs, type MetricDeclaration, type Runtime } from "../../core/runtime.ts";
import { repeat } from "../../lib/flow/repeat.ts";
import type { Gap, GapEvent, GapList, GapSummary } from "./gap.ts";
import { type AccountedLosses, type GapContent, GapFile, type GapLine, readGapFolder } from "./gap-file.ts";
import { type FirstEvent, GapRows, isFinal, isOutage, type NewGap, newest } from "./gap-rows.ts";
import { SignOfLife } from "./sign-of-life.ts";

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
export class GapRecord implements AsyncDisposable {
  readonly #runtime: Runtime;
  readonly #file: GapFile;
  readonly #rows: GapRows;
  /** Up to when each source is accounted for, by this run and the previous one. */
  readonly life: SignOfLife;
  readonly #ticks = new Set<() => void>();
  #working: readonly AsyncDisposable[] = [];
  #saving: Promise<boolean> = Promise.resolve(true);
  #losses: AccountedLosses;
  #lossesChanged = false;
  #unwritable = false;

  private constructor({ gaps, losses, life }: GapContent, file: GapFile, runtime: Runtime) {
    this.#runtime = runtime;
    this.#file = file;
    this.#rows = new GapRows(gaps);
    this.#losses = losses;
    this.life = new SignOfLife(life, runtime.clock);
  }

  /** Resolves once the record is read. `sources`: all configured sources. Never rejects: failed writes are repeated. */
  static async open(folder: string, sources: readonly string[], runtime: Runtime): Promise<GapRecord> {
    const file = new GapFile(folder);
    const record = new GapRecord(await readGapFolder(folder), file, runtime);
    record.#endLeftOver(sources);
    await record.#write(() => file.rewrite(record.#all()));
    record.#working = record.#work();
    return record;
  }

  /** Points lost from the buffer that rows account for. */
  get losses(): AccountedLosses {
    return this.#losses;
  }

  set losses(accounted: AccountedLosses) {
    this.#losses = accounted;
    this.#lossesChanged = true;
  }

  /** Abandons the open gaps of a source that was removed from the configuration. */
  sourceRemoved(source: string): void {
    this.life.removed(source);
    const outcome = "the source is not in the configuration any more";
    for (const { id, to = this.#runtime.clock.now() } of this.of(source))
      this.advance(id, "abandoned", { to, outcome });
  }

  /** Calls `act` once a second until the result is disposed. */
  eachSecond(act: () => void): Disposable {
    this.#ticks.add(act);
    return { [Symbol.dispose]: () => void this.#ticks.delete(act) };
  }

  get(id: number): Gap | undefined {
    return this.#rows.get(id);
  }

  /** Rows of a source, oldest first. */
  of(source: string): readonly Gap[] {
    return this.#rows.all().filter((gap) => gap.source === source);
  }

  add(event: FirstEvent, gap: NewGap): number {
    const { cause, source = "buffer" } = gap;
    const added = this.#rows.add(event, gap, this.#runtime.clock.now());
    this.#runtime.metrics.counter(metrics.gaps).add(1, { source, cause });
    if (isFinal(added)) this.#settle(added);
    return added.id;
  }

  /**
   * Applies `event` and `changes` to the row. Does nothing if `gapLife` has no entry for the event and the row's state.
   */
  advance(id: number, event: GapEvent | undefined, changes: Partial<NewGap>): void {
    const before = this.#rows.get(id);
    const after = this.#rows.change(id, changes, event);
    if (before && after && isFinal(after) && !isFinal(before)) this.#settle(after);
  }

  /** Changes a row but not its state. Does nothing if the row does not exist. */
  change(id: number, changes: Partial<NewGap>): void {
    this.advance(id, undefined, changes);
  }

  /** Rows that end at `since` or later, newest first. */
  list(since: number, most: number): GapList {
    const all = this.#rows.all();
    const oldest = all.reduce((least, { from }) => Math.min(least, from), Number.POSITIVE_INFINITY);
    const time = this.#runtime.clock.now();
    return { time, ...newest(all, since, most), ...(all.length > 0 && { since: epochMicros(oldest) }) };
  }

  summary(): GapSummary {
    return this.#rows.summary(this.#runtime.clock.now());
  }

  /** Whether all changes so far are on disk. Never rejects: a failed write is logged and repeated. */
  save(): Promise<boolean> {
    this.#saving = this.#saving.then(() => this.#save());
    return this.#saving;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#working.map((work) => work[Symbol.asyncDispose]()));
    await this.#saveAndSign(true);
  }

  /** Ends the rows that the previous agent left open and that no source continues. */
  #endLeftOver(sources: readonly string[]): void {
    const end = this.life.former?.time ?? 0;
    for (const gap of this.#rows.all())
      if (gap.source !== undefined && !sources.includes(gap.source)) this.sourceRemoved(gap.source);
      else if (gap.to === undefined && !isOutage(gap))
        this.advance(gap.id, "ends", { to: epochMicros(Math.max(gap.from, end)) });
  }

  #settle(gap: Gap): void {
    const { source = "buffer", cause, state, missingMs = 0 } = gap;
    if (state !== "filled") this.#runtime.metrics.counter(metrics.lost).add(missingMs / 1_000, { source, cause });
    this.#rows.join(gap);
  }

  /** Checks and writes once a second, separately, so that a slow disk does not delay the checks. */
  #work(): readonly AsyncDisposable[] {
    const look = () => {
      for (const act of this.#ticks) act();
      this.#measure();
    };
    const failure = "maintenance of the gap record failed";
    const works: readonly (() => void | Promise<void>)[] = [look, () => this.#saveAndSign(false)];
    return works.map((act) => {
      const step = async () => {
        try {
          await act();
        } catch (error) {
          this.#runtime.log.error({ part: "gaps", err: error }, failure);
        }
      };
      return repeat(step, { everyMs, gridMs: checkGridMs, first: "now", failure }, this.#runtime);
    });
  }

  #measure(): void {
    const open = new Map<string, number>([...this.life.running].map((source) => [source, 0]));
    for (const { to, source } of this.#rows.all())
      if (to === undefined && source !== undefined) open.set(source, (open.get(source) ?? 0) + 1);
    for (const [source, n] of open) this.#runtime.metrics.gauge(metrics.open).set(n, { source });
  }

  async #save(): Promise<boolean> {
    const ids = this.#rows.takeChanged();
    if (ids.length === 0 && !this.#lossesChanged) return true;
    const lines: GapLine[] = ids.map((id) => {
      const gap = this.#rows.get(id);
      return gap ? { gap } : { gone: id };
    });
    if (this.#lossesChanged) lines.push({ losses: this.#losses });
    this.#lossesChanged = false;
    if (await this.#write(() => this.#file.append(lines, () => this.#all()))) return true;
    this.#rows.giveBack(ids);
    this.#lossesChanged = true;
    return false;
  }

  /** Takes the sign before saving; otherwise it could cover rows that are not on disk. */
  async #saveAndSign(stopped: boolean): Promise<void> {
    const sign = this.life.next(stopped);
    const saved = await this.save();
    if (sign && saved) await this.#write(() => this.#file.alive(sign));
  }

  #all(): readonly GapLine[] {
    return [{ losses: this.#losses }, ...this.#rows.all().map((gap) => ({ gap }))];
  }

  /** False: the disk rejects writes at present. */
  async #write(write: () => Promise<void>): Promise<boolean> {
    const { log } = this.#runtime;
    try {
      await write();
      if (this.#unwritable) log.info({ part: "gaps" }, "the gap record can be written again");
      this.#unwritable = false;
      return true;
    } catch (error) {
      if (!this.#unwritable) log.warn({ part: "gaps", err: error }, "the gap record cannot be written for now");
      this.#unwritable = true;
      return false;
    }
  }
}
