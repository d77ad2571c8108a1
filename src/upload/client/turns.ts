// Whose turn it is to call a method of the service, where commands run beside an agent: the permitted rate is theirs together.
//
// Two files for each method: a lock that is held during a call, which the system takes from a process that dies, and when
// the next call may start. Times are on the monotonic clock, which all processes of the machine share.
import { chownSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import type { Logger } from "../../core/runtime.ts";
import type { Method } from "../../wire/method.ts";

/** Turns of one method among processes; within one, calls wait for each other by themselves. */
export interface Turns {
  /** False: another process is at it. */
  take(): boolean;
  /** When the next call may start, in monotonic milliseconds; undefined: nobody has said. Asked for while it is one's turn. */
  next(): Promise<number | undefined>;
  /** Says when the next call may start. */
  callAgainAt(time: number): void;
  /** Resolves when what was said can be read by others, and it is their turn. */
  give(): Promise<void>;
}

/** How long a disk may take to write a few bytes before that holds up nobody any longer, in milliseconds. */
const writtenWithinMs = 1_000;

/** The turns of an agent and of the commands beside it. A file that cannot be used holds nobody up. */
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
  of(method: Method): Turns | undefined {
    if (this.#files.has(method)) return this.#files.get(method);
    let file: TurnFile | undefined;
    try {
      file = new TurnFile(this.#folder, method);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.warn({ reason, method }, "the permitted rate cannot be shared with commands for now");
    }
    this.#files.set(method, file);
    return file;
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.values()) file?.[Symbol.dispose]();
  }
}

class TurnFile implements Turns, Disposable {
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
    // A full disk, say: then the lock alone keeps calls apart.
    this.#written = this.#written.then(() => writeFile(this.#path, String(time))).catch(() => {});
  }

  async give(): Promise<void> {
    await Promise.race([this.#written, setTimeout(writtenWithinMs, undefined, { ref: false })]);
    if (this.#lock.isTransaction) this.#lock.exec("ROLLBACK");
  }

  [Symbol.dispose](): void {
    this.#lock.close();
  }
}

/** An operator may be root where the agent is not: the agent has to be able to write it all the same. */
function ownAs(model: string, path: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(model);
  chownSync(path, uid, gid);
}
