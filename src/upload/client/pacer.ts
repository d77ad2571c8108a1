// One method of the service: its calls run one at a time and start at least an interval apart, never in a burst.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import PQueue from "p-queue";
import { reasonOf } from "../../core/errors.ts";
import type { Clock, Logger } from "../../core/runtime.ts";
import type { RequestGate, RequestTurn } from "../../core/sink.ts";
import { ownAs } from "../../lib/atomic-file.ts";
import type { Method } from "../../wire/method.ts";

/** What is always allowed for the way to the service, and what at most, in milliseconds. */
const usualTransit = 50;
const mostTransit = 500;
/** Calls that the shortest way is taken from. */
const remembered = 8;
/** Between two looks whether another process has ended its call, and how long one may take at most, in milliseconds. */
const turnPollMs = 25;
const turnPatienceMs = 60_000;

/** Spacing on the monotonic clock. Counts from its creation, so that not even a crash loop goes over the rate. */
export class Pacer {
  /** Order and concurrency. Its own interval runs on the wall clock and is not used. */
  readonly #queue = new PQueue({ concurrency: 1 });
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #turns: RateLease | undefined;
  readonly #gate: RequestGate | undefined;
  #next: number;
  /** Milliseconds that the last calls took. */
  #transits: number[] = [];

  /** `turns`: with other processes, whose calls count too. `gate`: with other agents; then a call starts with its request. */
  constructor(clock: Clock, requestsPerSecond: number, turns?: RateLease, gate?: RequestGate) {
    this.#clock = clock;
    this.#turns = turns;
    this.#gate = gate;
    this.#intervalMs = 1_000 / requestsPerSecond;
    this.#next = clock.monotonic() + this.#intervalMs;
  }

  /** Milliseconds until a call may start, if none is under way. */
  get waitMs(): number {
    return Math.max(0, this.#next - this.#clock.monotonic());
  }

  /**
   * Settles as `call` does, which starts when its turn has come and the interval is over. Rejects with `signal.reason`
   * when that comes first; `call` is not interrupted.
   */
  run<T>(call: (turn: RequestTurn | undefined) => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#queue.add(async () => {
      signal.throwIfAborted();
      await this.#turn(signal);
      let start = 0;
      let isSent = false;
      const begin = () => {
        start = this.#clock.monotonic();
        isSent = true;
        this.#callAgainAt(start + this.#intervalMs);
      };
      const gate = this.#gate;
      const turn = gate && {
        start() {
          isSent = gate.isOpen;
          if (isSent) begin();
          return isSent;
        },
      };
      try {
        await gate?.pass(signal);
        begin();
        return await call(turn);
      } finally {
        if (isSent) this.#callAgainAt(start + this.#intervalMs + this.#allowance(this.#clock.monotonic() - start));
        await this.#turns?.give();
      }
    });
  }

  #callAgainAt(time: number): void {
    this.#turns?.callAgainAt(time);
    // Others first, where they wait.
    this.#next = this.#turns ? time + 2 * turnPollMs : time;
  }

  /** Resolves when the interval is over and, where there are other processes, it is our turn. */
  async #turn(signal: AbortSignal): Promise<void> {
    const clock = this.#clock;
    let busySince: number | undefined;
    for (;;) {
      for (let wait = this.waitMs; wait > 0; wait = this.waitMs) await clock.sleep(wait, signal);
      if (!this.#turns) return;
      const now = clock.monotonic();
      if (this.#turns.take()) {
        const next = (await this.#turns.next()) ?? now;
        // Further away it can only be of before the machine was started.
        if (next <= now || next > now + this.#intervalMs + mostTransit) return;
        await this.#turns.give();
        this.#next = next;
      } else {
        busySince ??= now;
        // One that was stopped in the middle of a call must not stop others.
        if (now - busySince >= turnPatienceMs) return;
        await clock.sleep(turnPollMs, signal);
      }
    }
  }

  /**
   * The service counts when a request reaches it: some time between its start and its answer. A late one before a prompt
   * one would reach it less than the interval apart, so what this one took longer than others do is added. Of the first
   * nobody knows: it connects, and may have been late by all it took.
   */
  #allowance(transit: number): number {
    const first = this.#transits.length === 0;
    this.#transits = [...this.#transits.slice(1 - remembered), transit];
    const longer = first ? transit : transit - Math.min(...this.#transits);
    return Math.max(Math.min(usualTransit, transit), Math.min(mostTransit, longer));
  }
}

// Where commands run beside an agent the permitted rate is theirs together. Two files for each method: a lock that is held
// during a call, which the system takes from a process that dies, and when the next call may start. Times are on the
// monotonic clock, which all processes of the machine share.

/** Milliseconds after which a request no longer waits for the disk to write a few bytes. */
const writtenWithinMs = 1_000;

/** Coordinates the request rate of the agent and of commands. A file that cannot be used delays no request. */
export class TurnFolder implements Disposable {
  readonly #folder: string;
  readonly #log: Logger;
  readonly #files = new Map<Method, TurnFile | undefined>();

  /** `stateDir`: of the agent. */
  constructor(stateDir: string, log: Logger) {
    this.#folder = join(stateDir, "turns");
    this.#log = log;
  }

  /** Undefined: the files cannot be made or opened, and each process keeps the rate for itself. */
  of(method: Method): RateLease | undefined {
    if (this.#files.has(method)) return this.#files.get(method);
    let file: TurnFile | undefined;
    try {
      file = new TurnFile(this.#folder, method);
    } catch (error) {
      this.#log.warn({ reason: reasonOf(error), method }, "the permitted rate cannot be shared with commands for now");
    }
    this.#files.set(method, file);
    return file;
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.values()) file?.[Symbol.dispose]();
  }
}

/** Turns of one method among processes; within one, calls wait for each other by themselves. */
export type RateLease = Pick<TurnFile, "take" | "next" | "callAgainAt" | "give">;

class TurnFile implements Disposable {
  readonly #lock: DatabaseSync;
  readonly #path: string;
  /** Not on the event loop: a disk that hangs must not stop everything. */
  #written: Promise<void> = Promise.resolve();

  constructor(folder: string, method: Method) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#path = join(folder, method);
    const lock = `${this.#path}.lock`;
    // The lock is SQLite's: any other descriptor on its file would drop it when it is closed.
    for (const path of [this.#path, lock]) if (!existsSync(path)) writeFileSync(path, "", { mode: 0o600, flag: "a" });
    for (const path of [folder, this.#path, lock]) ownAs(dirname(folder), path);
    this.#lock = new DatabaseSync(lock, { timeout: 0 });
  }

  /** False: another process is at it. */
  take(): boolean {
    try {
      // Nothing is ever written to it.
      this.#lock.exec("BEGIN EXCLUSIVE");
    } catch (error) {
      // SQLITE_BUSY; a disk that fails holds up nothing.
      return !(error instanceof Error && "errcode" in error && error.errcode === 5);
    }
    return true;
  }

  /** When the next call may start, in monotonic milliseconds; undefined: no process has said. Asked for while it is one's turn. */
  async next(): Promise<number | undefined> {
    try {
      const text = await readFile(this.#path, "utf8");
      const time = text === "" ? Number.NaN : Number(text);
      return Number.isFinite(time) ? time : undefined;
    } catch {
      return undefined;
    }
  }

  /** Says when the next call may start. */
  callAgainAt(time: number): void {
    // A full disk, say: then the lock alone keeps calls apart.
    this.#written = this.#written.then(() => writeFile(this.#path, String(time))).catch(() => {});
  }

  /** Resolves when what was said can be read by others, and it is their turn. */
  async give(): Promise<void> {
    await Promise.race([this.#written, setTimeout(writtenWithinMs, undefined, { ref: false })]);
    if (this.#lock.isTransaction) this.#lock.exec("ROLLBACK");
  }

  [Symbol.dispose](): void {
    this.#lock.close();
  }
}
