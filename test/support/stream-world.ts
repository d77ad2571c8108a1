// Collectors that publish to one stream, and its reader, with what the service would have stored in the end.

import type { KeyBucket, PointStream } from "../../src/cluster/connection/jetstream.ts";
import type { Block } from "../../src/core/block.ts";
import type { BufferReader } from "../../src/core/buffer.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { memoryBucket } from "./memory-bucket.ts";
import { MemoryDisk } from "./memory-disk.ts";
import { memoryStream } from "./memory-stream.ts";
import { type Collector, hastyRuntime, openCollector, openReader } from "./stream-place.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const never = new AbortController().signal;
const t0 = Date.parse("2026-01-01T00:00:00Z") * 1_000;

export type Points = Readonly<Record<string, readonly (readonly [second: number, value: number])[]>>;

/** A node whose disks are kept across restarts of its process. */
export interface WorldNode extends Disposable {
  start(): Promise<Collector>;
}

export function worldNode(stream: PointStream, state: KeyBucket, node: string, keepMs?: number): WorldNode {
  const home = temporaryFolder();
  const disk = new MemoryDisk();
  const keep = keepMs === undefined ? {} : { keepMs };
  return {
    start: () => openCollector({ stream, state, node, directory: home.path, ...keep }, disk),
    [Symbol.dispose]: () => home[Symbol.dispose](),
  };
}

/** Appends to the local buffer. Resolves when it acknowledges. */
export async function append({ local }: Pick<Collector, "local">, points: Points): Promise<void> {
  const all = Object.entries(points).flatMap(([input, of]) =>
    of.map(([second, value]) => ({ input: input as InputId, time: epochMicros(t0 + second * 1e6), value })),
  );
  await local.append(all, { awaited: true }, never);
}

/** The service's storage: the last value delivered for each time, and the number of points received. */
export class ServiceStore {
  readonly values = new Map<string, number>();
  deliveries = 0;

  take(block: Block): void {
    for (const { input, times, values } of block.series)
      for (const [i, time] of times.entries()) {
        this.values.set(`${input}@${(time - t0) / 1e6}`, values[i]!);
        this.deliveries++;
      }
  }

  /** Delivers and settles everything, from the lane that `lane` returns. */
  async drain(reader: BufferReader, lane: () => "live" | "backlog" = () => "backlog", maxPoints = 1e6): Promise<void> {
    for (;;) {
      const options = { wait: false, maxPoints };
      const block = (await reader.take(lane(), options, never)) ?? (await reader.take("backlog", options, never));
      if (!block) return;
      this.take(block);
      await reader.settle([{ block: block.id, inputs: block.inputs }]);
    }
  }
}

export function memoryWorld() {
  const runtime = hastyRuntime();
  const stream = memoryStream();
  const state = memoryBucket();
  return {
    stream,
    state,
    /** Messages that readers have counted as lost. */
    lostMessages: () => runtime.metric("cluster_lost_messages_total"),
    node: (name: string) => worldNode(stream, state, name),
    reader: (read: PointStream = stream) => openReader(read, state, runtime),
  };
}
