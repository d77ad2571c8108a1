// Paces one method of the service: calls run one at a time, at least an interval apart, and never in bursts.

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import PQueue from "p-queue";
import { reasonOf } from "../../core/errors.ts";
import type { Clock, Logger } from "../../core/runtime.ts";
import type { RequestGate, RequestTurn } from "../../core/sink.ts";
import { ownAs } from "../../lib/files/atomic-file.ts";
import type { Method } from "../../wire/method.ts";

/** Bounds of the allowance for network transit, in milliseconds. */
const usualTransit = 50;
const mostTransit = 500;
/** Calls over which the shortest transit is determined. */
const remembered = 8;
/** Poll interval while another process calls, and the longest wait for it, in milliseconds. */
const turnPollMs = 25;
const turnPatienceMs = 60_000;

/** Monotonic spacing. It starts with an interval, so that even a crash loop stays within the rate. */
export class Pacer {
  /** Serialises calls. Its own interval uses the wall clock and is not used. */
  readonly #queue = new PQueue({ concurrency: 1 });
  readonly #clock: Clock;
  readonly #intervalMs: number;
  readonly #turns: RateLease | undefined;
  readonly #gate: RequestGate | undefined;
  #next: number;
  /** Durations of the last calls, in milliseconds. */
  #transits: number[] = [];

  /** `turns`: coordinates processes. `gate`: coordinates agents; the interval then starts when the request does. */
  constructor(clock: Clock, requestsPerSecond: number, turns?: RateLease, gate?: RequestGate) {
    this.#clock = clock;
    this.#turns = turns;
    this.#gate = gate;
    this.#intervalMs = 1_000 / requestsPerSecond;
    this.#next = clock.monotonic() + this.#intervalMs;
  }

  /** Milliseconds until the next call may start, if none is running. */
  get waitMs(): number {
    return Math.max(0, this.#next - this.#clock.monotonic());
  }

  /** Settles as `call`, which starts in its turn after the interval. Rejects with `signal.reason` before. */
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
        gate?.done?.();
        await this.#turns?.give();
      }
    });
  }

  #callAgainAt(time: number): void {
    this.#turns?.callAgainAt(time);
    // Gives waiting processes precedence.
    this.#next = this.#turns ? time + 2 * turnPollMs : time;
  }

  /** Resolves once the interval has elapsed and no other process holds the turn. */
  async #turn(signal: AbortSignal): Promise<void> {
    const clock = this.#clock;
    let busySince: number | undefined;
    for (;;) {
      for (let wait = this.waitMs; wait > 0; wait = this.waitMs) await clock.sleep(wait, signal);
      if (!this.#turns) return;
      const now = clock.monotonic();
      if (this.#turns.take()) {
        const next = (await this.#turns.next()) ?? now;
        // A time further ahead was stored before the machine was restarted.
        if (next <= now || next > now + this.#intervalMs + mostTransit) return;
        await this.#turns.give();
        this.#next = next;
      } else {
        busySince ??= now;
        // A process that was suspended during a call must not block others.
        if (now - busySince >= turnPatienceMs) return;
        await clock.sleep(turnPollMs, signal);
      }
    }
  }

  /**
   * The service counts a request on arrival, between its start and its answer. If a slow request precedes a fast one,
   * both may arrive less than an interval apart. The excess over the shortest recent duration is therefore added to the
   * interval. Until enough calls are known, the shortest may be shorter than any of them, so the whole duration counts.
   */
  #allowance(transit: number): number {
    this.#transits = [...this.#transits.slice(1 - remembered), transit];
    const shortest = this.#transits.length < remembered ? 0 : Math.min(...this.#transits);
    const longer = transit - shortest;
    return Math.max(Math.min(usualTransit, transit), Math.min(mostTransit, longer));
  }
}

// Agent and commands on one machine share the permitted rate. Each method has two files: a lock held during a call,
// which the system releases if the process dies, and the time of the next call. Times are those of the monotonic clock,
// which all processes of the machine share.

/** Longest wait of a request for the file write, in milliseconds. */
const writtenWithinMs = 1_000;

/** Coordinates the request rate of the agent and commands. An unusable file delays no request. */
export class TurnFolder implements Disposable {
  readonly #folder: string;
  readonly #log: Logger;
  readonly #files = new Map<Method, TurnFile | undefined>();

  /** `stateDir`: folder of the agent. */
  constructor(stateDir: string, log: Logger) {
    this.#folder = join(stateDir, "turns");
    this.#log = log;
  }

  /** Undefined: the files are unusable, so each process observes the rate on its own. */
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

/** Turns of one method among processes. Within a process, the pacer serialises calls. */
export type RateLease = Pick<TurnFile, "take" | "next" | "callAgainAt" | "give">;

class TurnFile implements Disposable {
  readonly #lock: DatabaseSync;
  readonly #path: string;
  /** Pending writes. Asynchronous, so that a blocked disk does not stop the event loop. */
  #written: Promise<void> = Promise.resolve();

  constructor(folder: string, method: Method) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#path = join(folder, method);
    const lock = `${this.#path}.lock`;
    // Only SQLite may open the lock file, since closing any other descriptor would release the lock.
    for (const path of [this.#path, lock]) if (!existsSync(path)) writeFileSync(path, "", { mode: 0o600, flag: "a" });
    for (const path of [folder, this.#path, lock]) ownAs(dirname(folder), path);
    this.#lock = new DatabaseSync(lock, { timeout: 0 });
  }

  /** False: another process holds the turn. */
  take(): boolean {
    try {
      // Locks the file; writes nothing.
      this.#lock.exec("BEGIN EXCLUSIVE");
    } catch (error) {
      // SQLITE_BUSY. Other errors, such as a failing disk, block no call.
      return !(error instanceof Error && "errcode" in error && error.errcode === 5);
    }
    return true;
  }

  /** Time of the next call, in monotonic milliseconds. Undefined: unknown. Call it only during one's turn. */
  async next(): Promise<number | undefined> {
    try {
      const text = await readFile(this.#path, "utf8");
      const time = text === "" ? Number.NaN : Number(text);
      return Number.isFinite(time) ? time : undefined;
    } catch {
      return undefined;
    }
  }

  callAgainAt(time: number): void {
    // If the write fails, as on a full disk, the lock alone separates calls.
    this.#written = this.#written.then(() => writeFile(this.#path, String(time))).catch(() => {});
  }

  /** Ends the turn once other processes can read the stored time. */
  async give(): Promise<void> {
    await Promise.race([this.#written, setTimeout(writtenWithinMs, undefined, { ref: false })]);
    if (this.#lock.isTransaction) this.#lock.exec("ROLLBACK");
  }

  [Symbol.dispose](): void {
    this.#lock.close();
  }
}
