// Answers the requests of the main thread. Runs in the log thread, and without a thread in tests.
import { parentPort } from "node:worker_threads";
import { AgentError, reasonOf } from "../../../core/errors.ts";
import type { InputId } from "../../../core/point.ts";
import { RateLimit } from "../../../lib/flow/rate-limited-log.ts";
import type { LeasedBlock, Taken } from "../blocks/block-cut.ts";
import { type Disk, diskErrorCode, type Note, readOnlyDisk } from "../files/disk.ts";
import type { FolderLock } from "../files/lock.ts";
import { keepSameTime } from "../format/input-table.ts";
import { Store } from "../log/store.ts";
import type { LogEnvironment } from "../segments/segment.ts";
import type { StoreOpened, StoreReply, StoreRequest, StoreStart } from "./worker-port.ts";

export interface ServerEnvironment extends Omit<LogEnvironment, "note"> {
  /** Locks the folder, which exists by then, for this process. */
  readonly lock: (folder: string) => FolderLock;
}

/** Errors that mean that this process may not write to the folder, not that the disk is full or broken. */
const unwritable = new Set(["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST", "ERR_SQLITE_ERROR"]);

export class StoreServer {
  readonly opened: StoreOpened;
  #store: Store | undefined;
  #lock: FolderLock | undefined;
  readonly #folder: string;
  /** True if another folder or none is at the path: nothing is written then. */
  #isUnmounted = false;
  readonly #limit = new RateLimit();
  #notes: Note[] = [];
  #now = 0;
  #inputsSent = 0;
  #more = false;
  #unread = false;
  /** The store's input number by the main thread's input number. */
  readonly #numbers: number[] = [];

  constructor({ options, now, again }: StoreStart, environment: ServerEnvironment) {
    this.#now = now.monotonic;
    this.#folder = options.folder;
    const error = this.#guard(() => {
      // An empty folder may be an unmounted volume's mount point: the volume would later hide a new buffer.
      if (again && isEmpty(environment.disk, options.folder))
        throw new AgentError("BUFFER_UNAVAILABLE", this.#unmountedMessage);
      environment.disk.makeFolder(options.folder);
      this.#lock = environment.lock(options.folder);
      const disk = this.#lock.exclusive ? environment.disk : readOnlyDisk(environment.disk);
      const note = (level: Note["level"], fields: Note["fields"], message: string) => {
        const admitted = this.#limit.admit(message, { part: "buffer", ...fields }, this.#now);
        if (admitted) this.#notes.push({ level, fields: admitted, message });
      };
      this.#store = new Store(options, { ...environment, disk, note }, now);
    }, options.folder);
    if (error) this.#lock?.[Symbol.dispose]();
    this.opened = { ...this.#reply(error), foreign: this.#store?.foreign };
  }

  /** Throws if the folder must be opened again by another server; this one is unusable then. */
  handle(request: StoreRequest): StoreReply {
    this.#checkLock(request);
    let taken: Taken | undefined;
    this.#more = false;
    this.#unread = false;
    this.#now = request.now.monotonic;
    const error = this.#guard(() => {
      if (!this.#store) throw new AgentError("BUFFER_UNAVAILABLE", "the buffer is closed");
      taken = this.#isUnmounted ? this.#runUnmounted(this.#store, request) : this.#run(this.#store, request);
    }, "");
    return { ...this.#reply(error), ...taken, more: this.#more, unread: this.#unread };
  }

  /** Checks the lock. If it was lost, another process may have written since, so the state in memory is invalid. */
  #checkLock({ kind }: StoreRequest): void {
    // Settlements are applied in memory even if the folder is gone, so that the service's answer is not lost.
    if (kind === "settle") this.#isUnmounted = this.#lock?.state() !== "held";
    if (kind !== "append" && kind !== "tick" && kind !== "close") return;
    const state = this.#lock?.state();
    this.#isUnmounted = state === "unmounted";
    if (state !== "stale") return;
    this.#leave();
    throw new AgentError("BUFFER_UNAVAILABLE", "the lock of the folder was lost: the folder is opened again");
  }

  #runUnmounted(store: Store, request: StoreRequest): Taken | undefined {
    const { kind } = request;
    if (kind === "append") {
      // Learn the names even now: a name is sent only once, and later groups use its number.
      this.#learn(store, request.newInputs);
      throw new AgentError("BUFFER_UNAVAILABLE", this.#unmountedMessage);
    }
    if (kind === "settle") store.settle(request.done, false);
    if (kind === "take" || kind === "release") return this.#run(store, request);
    if (kind === "close") this.#leave();
    return undefined;
  }

  #run(store: Store, request: StoreRequest): Taken | undefined {
    const { kind, now } = request;
    switch (kind) {
      case "append": {
        this.#learn(store, request.newInputs);
        const { inputs, count } = request.group;
        for (let i = 0; i < count; i++) {
          const given = inputs[i]!;
          const mode = given >= keepSameTime ? keepSameTime : 0;
          const number = this.#numbers[given - mode];
          // Otherwise the point would be stored under a wrong name.
          if (number === undefined) throw new RangeError("an input without a name");
          inputs[i] = number + mode;
        }
        store.append(request.group, now);
        return undefined;
      }
      case "take": {
        const { lane, maxPoints, enough, inputs, except, from } = request;
        const numbers = (of: readonly InputId[] | undefined) =>
          of && new Set(of.map((input) => store.inputs.numberOf(input)));
        return store.take({ lane, maxPoints, enough, inputs: numbers(inputs), except: numbers(except), from });
      }
      case "settle":
        store.settle(request.done);
        return undefined;
      case "release":
        if (request.blocks === "all") store.releaseAll();
        else store.release(request.blocks);
        return undefined;
      case "tick":
        store.tick(now);
        this.#unread = store.isUnread;
        this.#more = store.work(now);
        return undefined;
      case "work":
        this.#more = store.work(now);
        return undefined;
      case "close":
        store.close(now);
        this.#leave();
        return undefined;
    }
  }

  #learn(store: Store, newInputs: readonly InputId[]): void {
    for (const input of newInputs) this.#numbers.push(store.inputs.numberOf(input));
  }

  #leave(): void {
    this.#store = undefined;
    this.#lock?.[Symbol.dispose]();
    this.#lock = undefined;
  }

  get #unmountedMessage(): string {
    return `${this.#folder} is gone, or an empty folder has its place`;
  }

  #guard(action: () => void, folder: string): StoreReply["error"] {
    try {
      action();
      return undefined;
    } catch (error) {
      if (error instanceof AgentError) return { code: error.code, message: error.message, hint: error.hint };
      const message = reasonOf(error);
      const code = diskErrorCode(error);
      if (folder !== "" && unwritable.has(code))
        return { code: "DATA_DIR_UNWRITABLE", message: `cannot write to ${folder}: ${message}` };
      if (code !== "") return { code: "BUFFER_UNAVAILABLE", message };
      return { code: "bug", message: error instanceof Error ? (error.stack ?? message) : message };
    }
  }

  #reply(error: StoreReply["error"]): StoreReply {
    const notes = this.#notes;
    this.#notes = [];
    const newInputs: readonly InputId[] = this.#store?.inputs.since(this.#inputsSent) ?? [];
    this.#inputsSent += newInputs.length;
    const stored = this.#store?.stats();
    const stats = stored && this.#isUnmounted ? { ...stored, degraded: this.#unmountedMessage } : stored;
    return { error, block: undefined, resumeAt: undefined, newInputs, stats, notes, more: false, unread: false };
  }
}

function isEmpty(disk: Disk, folder: string): boolean {
  try {
    return disk.list(folder).length === 0;
  } catch {
    return true;
  }
}

/** The log thread: opens a folder and answers requests in order until `close`, or until `handle` throws. */
export function runLogThread(environment: ServerEnvironment): void {
  const port = parentPort;
  // `worker-port.ts` sends messages of these types.
  port?.once("message", (start: StoreStart) => {
    const server = new StoreServer(start, environment);
    port.on("message", (request: StoreRequest) => {
      const reply = server.handle(request);
      port.postMessage(reply, reply.block ? columnsOf(reply.block) : []);
      if (request.kind === "close") port.close();
    });
    port.postMessage(server.opened);
  });
}

function columnsOf({ inputs, timeStarts, valueStarts, times, values, late }: LeasedBlock): ArrayBuffer[] {
  return [inputs, timeStarts, valueStarts, times, values, late].map(({ buffer }) => buffer);
}
