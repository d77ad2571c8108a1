// Stores on a disk in memory, and buffers on such stores without a thread, for tests of the log.
import type { Disk, Note } from "../../src/buffer/disk/files/disk.ts";
import type { FolderLock } from "../../src/buffer/disk/files/lock.ts";
import type { PointColumns } from "../../src/buffer/disk/format/input-table.ts";
import { openSegmentStore, type Store } from "../../src/buffer/disk/log/store.ts";
import type { StoreOptions } from "../../src/buffer/disk/segments/segment.ts";
import { openStoreServer } from "../../src/buffer/disk/worker/store-server.ts";
import type { OpenPort } from "../../src/buffer/disk/worker/worker-port.ts";
import { AgentError } from "../../src/core/errors.ts";
import type { InputId } from "../../src/core/point.ts";
import { seeded } from "./runtime.ts";

export const folder = "/data/buffer";

export interface StoreSetup extends Partial<StoreOptions> {
  readonly seed?: number;
  /** Seconds since the test opened its first store. */
  readonly at?: number;
}

export interface OpenedStore {
  readonly store: Store;
  readonly notes: readonly Note[];
}

export function openStore(disk: Disk, setup: StoreSetup = {}): OpenedStore {
  const { seed = 1, at = 0, ...options } = setup;
  const random = seeded(seed);
  const notes: Note[] = [];
  disk.makeFolder(options.folder ?? folder);
  const store = openSegmentStore(
    {
      folder,
      integration: "plant",
      maxSize: 2 ** 30,
      maxAgeMs: 30 * 86_400_000,
      reserveFreeDisk: 0,
      whenFull: "dropOldest",
      segmentBytes: 32_768,
      ...options,
    },
    {
      disk,
      random32: () => Math.floor(random() * 2 ** 32),
      note: (level, fields, message) => notes.push({ level, fields, message }),
    },
    moment(at),
  );
  return { store, notes };
}

/** `seconds` after the beginning of 2026. */
export function moment(seconds: number) {
  return { wall: Date.parse("2026-01-01T00:00:00Z") * 1_000 + seconds * 1e6, monotonic: seconds * 1_000 };
}

export type Triple = readonly [input: string, time: number, value: number];

/** Appends the points as one group. */
export function append(store: Store, points: readonly Triple[], at = 0): void {
  store.append(group(store, points), moment(at));
}

export function group(store: Store, points: readonly Triple[]): PointColumns {
  return {
    inputs: Uint32Array.from(points, ([input]) => store.inputs.numberOf(input as InputId)),
    times: Float64Array.from(points, ([, time]) => time),
    values: Float64Array.from(points, ([, , value]) => value),
    count: points.length,
  };
}

export interface TakenBlock {
  readonly id: number;
  readonly points: Triple[];
}

export function take(
  store: Store,
  lane: "live" | "backlog" = "backlog",
  maxPoints = 1e6,
  only?: readonly string[],
  without?: readonly string[],
): TakenBlock | undefined {
  const numbers = (of: readonly string[] | undefined) =>
    of && new Set(of.map((input) => store.inputs.numberOf(input as InputId)));
  const request = { lane, maxPoints, inputs: numbers(only), except: numbers(without) };
  let taken = store.take(request);
  while (taken.resumeAt !== undefined) taken = store.take({ ...request, from: taken.resumeAt });
  const { block } = taken;
  if (!block) return undefined;
  const points: Triple[] = [];
  block.inputs.forEach((input, i) => {
    const [start, end] = [block.valueStarts[i]!, block.valueStarts[i + 1]!];
    for (let k = start; k < end; k++)
      points.push([store.inputs.inputAt(input), block.times[block.timeStarts[i]! + k - start]!, block.values[k]!]);
  });
  return { id: block.id, points };
}

/** Leases everything available, block by block, and does not release it. */
export function takeAll(store: Store): Triple[] {
  const points: Triple[] = [];
  for (let block = take(store); block; block = take(store)) points.push(...block.points);
  return points;
}

/** Settles these series of a block; default: all. */
export function settle(store: Store, block: TakenBlock, inputs?: readonly string[], refused = 0): void {
  const names = inputs ?? [...new Set(block.points.map(([input]) => input))];
  store.settle([
    { block: block.id, inputs: Uint32Array.from(names, (input) => store.inputs.numberOf(input as InputId)), refused },
  ]);
}

export const ownLock: FolderLock = { exclusive: true, state: () => "held", [Symbol.dispose]() {} };

/** How often a buffer was opened: each opening has other salts, or a state would describe the segments of another one. */
let opened = 0;

/** Runs the log in this thread on any disk. Once `crash.now` is set or it has thrown, it no longer answers. */
export function inProcess(
  disk: Disk,
  crash: { now: boolean } = { now: false },
  lock: (folder: string) => FolderLock = () => ownLock,
): OpenPort {
  return async (start) => {
    const random = seeded(7 + opened++);
    let failure: AgentError | undefined;
    const server = openStoreServer(start, {
      disk,
      random32: () => Math.floor(random() * 2 ** 32),
      lock,
    });
    return {
      opened: server.opened,
      get failure() {
        return crash.now ? ended("the log thread has ended") : failure;
      },
      call: (request, transfer) => {
        if (crash.now || failure) return Promise.reject(failure ?? ended("the log thread has ended"));
        // Transfers the buffers as between threads: the sender must no longer use them.
        const moved = structuredClone(request, { transfer: [...transfer] });
        return new Promise((resolve, reject) =>
          setImmediate(() => {
            try {
              resolve(server.handle(moved));
            } catch (error) {
              failure = ended(String(error));
              reject(failure);
            }
          }),
        );
      },
      [Symbol.asyncDispose]: async () => {},
    };
  };
}

const ended = (message: string) => new AgentError("BUFFER_UNAVAILABLE", message);
