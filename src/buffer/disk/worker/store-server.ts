// Answers the requests of the main thread. Runs in the log thread, and without a thread in tests.
import { parentPort } from "node:worker_threads";
import { AgentError, reasonOf } from "../../../core/errors.ts";
import type { InputId } from "../../../core/point.ts";
import { RateLimit } from "../../../lib/flow/rate-limited-log.ts";
import type { LeasedBlock } from "../blocks/block-cut.ts";
import { type Disk, diskErrorCode, type Note, readOnlyDisk } from "../files/disk.ts";
import type { FolderLock } from "../files/lock.ts";
import { keepSameTime } from "../format/input-table.ts";
import { openSegmentStore, type Store } from "../log/store.ts";
import type { LogEnvironment } from "../segments/segment.ts";
import type { StoreOpened, StoreReply, StoreRequest, StoreStart } from "./worker-port.ts";

export interface ServerEnvironment extends Omit<LogEnvironment, "note"> {
  /** Locks the folder, which exists by then, for this process. */
  readonly lock: (folder: string) => FolderLock;
}

/** Errors that mean that this process may not write to the folder, not that the disk is full or broken. */
const unwritable = new Set(["EACCES", "EPERM", "EROFS", "ENOTDIR", "EEXIST", "ERR_SQLITE_ERROR"]);

/** `handle` throws if the folder must be opened again by another server; this one is unusable then. */
export interface StoreServer {
  readonly opened: StoreOpened;
  handle(request: StoreRequest): StoreReply;
}

export function openStoreServer({ options, now, again }: StoreStart, environment: ServerEnvironment): StoreServer {
  const { folder } = options;
  const unmountedMessage = `${folder} is gone, or an empty folder has its place`;
  const limit = new RateLimit();
  /** The store's input number by the main thread's input number. */
  const numbers: number[] = [];
  let store: Store | undefined;
  let lock: FolderLock | undefined;
  /** True if another folder or none is at the path: nothing is written then. */
  let isUnmounted = false;
  let notes: Note[] = [];
  let time = now.monotonic;
  let inputsSent = 0;

  /** Checks the lock. If it was lost, another process may have written since, so the state in memory is invalid. */
  function checkLock({ kind }: StoreRequest): void {
    // Settlements are applied in memory even if the folder is gone, so that the service's answer is not lost.
    if (kind === "settle") isUnmounted = lock?.state() !== "held";
    if (kind !== "append" && kind !== "tick" && kind !== "close") return;
    const state = lock?.state();
    isUnmounted = state === "unmounted";
    if (state !== "stale") return;
    leave();
    throw new AgentError("BUFFER_UNAVAILABLE", "the lock of the folder was lost: the folder is opened again");
  }

  function runUnmounted(open: Store, request: StoreRequest): Partial<StoreReply> | undefined {
    const { kind } = request;
    if (kind === "append") {
      // Learn the names even now: a name is sent only once, and later groups use its number.
      learn(open, request.newInputs);
      throw new AgentError("BUFFER_UNAVAILABLE", unmountedMessage);
    }
    if (kind === "settle") open.settle(request.done, false);
    if (kind === "take" || kind === "release") return run(open, request);
    if (kind === "close") leave();
    return undefined;
  }

  function run(open: Store, request: StoreRequest): Partial<StoreReply> | undefined {
    switch (request.kind) {
      case "append": {
        learn(open, request.newInputs);
        const { inputs, count } = request.group;
        for (let i = 0; i < count; i++) {
          const given = inputs[i]!;
          const mode = given >= keepSameTime ? keepSameTime : 0;
          const number = numbers[given - mode];
          // Otherwise the point would be stored under a wrong name.
          if (number === undefined) throw new RangeError("an input without a name");
          inputs[i] = number + mode;
        }
        open.append(request.group, request.now);
        return undefined;
      }
      case "take": {
        const { lane, maxPoints, enough, inputs, except, from } = request;
        const numbersOf = (of: readonly InputId[] | undefined) =>
          of && new Set(of.map((input) => open.inputs.numberOf(input)));
        return open.take({ lane, maxPoints, enough, inputs: numbersOf(inputs), except: numbersOf(except), from });
      }
      case "settle":
        open.settle(request.done);
        return undefined;
      case "release":
        if (request.blocks === "all") open.releaseAll();
        else open.release(request.blocks);
        return undefined;
      case "tick":
        open.tick(request.now);
        return { unread: open.isUnread, more: open.work(request.now) };
      case "work":
        return { more: open.work(request.now) };
      case "close":
        open.close(request.now);
        leave();
        return undefined;
    }
  }

  function learn(open: Store, newInputs: readonly InputId[]): void {
    for (const input of newInputs) numbers.push(open.inputs.numberOf(input));
  }

  function leave(): void {
    store = undefined;
    lock?.[Symbol.dispose]();
    lock = undefined;
  }

  function reply(error: StoreReply["error"]): StoreReply {
    const newInputs: readonly InputId[] = store?.inputs.since(inputsSent) ?? [];
    inputsSent += newInputs.length;
    const stored = store?.stats();
    const stats = stored && isUnmounted ? { ...stored, degraded: unmountedMessage } : stored;
    const noted = notes;
    notes = [];
    return { error, block: undefined, resumeAt: undefined, newInputs, stats, notes: noted, more: false, unread: false };
  }

  const error = failureOf(() => {
    // An empty folder may be an unmounted volume's mount point: the volume would later hide a new buffer.
    if (again && isEmpty(environment.disk, folder)) throw new AgentError("BUFFER_UNAVAILABLE", unmountedMessage);
    environment.disk.makeFolder(folder);
    lock = environment.lock(folder);
    const disk = lock.exclusive ? environment.disk : readOnlyDisk(environment.disk);
    const note = (level: Note["level"], fields: Note["fields"], message: string) => {
      const admitted = limit.admit(message, { part: "buffer", ...fields }, time);
      if (admitted) notes.push({ level, fields: admitted, message });
    };
    store = openSegmentStore(options, { ...environment, disk, note }, now);
  }, folder);
  if (error) lock?.[Symbol.dispose]();
  return {
    opened: { ...reply(error), foreign: store?.foreign },
    handle(request) {
      checkLock(request);
      time = request.now.monotonic;
      let result: Partial<StoreReply> | undefined;
      const failure = failureOf(() => {
        if (!store) throw new AgentError("BUFFER_UNAVAILABLE", "the buffer is closed");
        result = isUnmounted ? runUnmounted(store, request) : run(store, request);
      });
      return { ...reply(failure), ...result };
    },
  };
}

/** `folder`: it is being opened, so an error may mean that it cannot be written. */
function failureOf(action: () => void, folder?: string): StoreReply["error"] {
  try {
    action();
    return undefined;
  } catch (error) {
    if (error instanceof AgentError) return { code: error.code, message: error.message, hint: error.hint };
    const message = reasonOf(error);
    const code = diskErrorCode(error);
    if (folder !== undefined && unwritable.has(code))
      return { code: "DATA_DIR_UNWRITABLE", message: `cannot write to ${folder}: ${message}` };
    if (code !== "") return { code: "BUFFER_UNAVAILABLE", message };
    return { code: "bug", message: error instanceof Error ? (error.stack ?? message) : message };
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
    const server = openStoreServer(start, environment);
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
