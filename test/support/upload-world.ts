// Simulated time with uploaders that are killed: nothing of a killed one continues, and the blocks that it leased are
// free again.
import { join } from "node:path";
import { Block, type BlockId } from "../../src/core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../src/core/buffer.ts";
import type { Clock } from "../../src/core/runtime.ts";
import type { Sink } from "../../src/core/sink.ts";
import { orAbort } from "../../src/lib/flow/abort.ts";
import { serviceOptions } from "../../src/upload/client/options.ts";
import { openCatalog } from "../../src/upload/signals/catalog.ts";
import { openUploader } from "../../src/upload/uploader.ts";
import { wantedBy } from "./memory-reader.ts";
import { type ManualClock, testRuntime } from "./runtime.ts";
import { uploadIntegration } from "./uploading.ts";

/** The promise that a dead process awaits. */
const never = new Promise<never>(() => {});

/** Blocks that stay settled once a living process has called `settle`. */
export class DurableBlocks {
  readonly #free = new Map<BlockId, Block>();
  #wake = Promise.withResolvers<void>();
  /** IDs for the rests of divided blocks, above those that tests assign. */
  #nextId = 1_000_000;
  /** Points that were settled as refused. */
  refused = 0;

  append(block: Block): void {
    this.#free.set(block.id, block);
    this.#wake.resolve();
  }

  get unsettled(): number {
    return this.#free.size;
  }

  /** The reader of one process. Blocks that it leases and does not settle are available to the next process. */
  reader(alive: () => boolean): BufferReader {
    const out = new Set<BlockId>();
    return {
      take: async (lane: Lane, options: TakeOptions, signal: AbortSignal) => {
        const isWanted = wantedBy(options);
        for (;;) {
          if (!alive()) return await never;
          signal.throwIfAborted();
          const free = [...this.#free.values()].filter(({ id, series }) => !out.has(id) && series.some(isWanted));
          const block = lane === "live" ? free.at(-1) : free[0];
          if (block) {
            const rest = block.series.filter((series) => !isWanted(series));
            const id = this.#nextId++ as BlockId; // a BlockId as the buffer assigns it
            const taken = Block.of(block.id, block.series.filter(isWanted));
            this.#free.set(taken.id, taken);
            if (rest.length > 0) this.#free.set(id, Block.of(id, rest));
            out.add(taken.id);
            return taken;
          }
          if (!options.wait) return undefined;
          this.#wake = Promise.withResolvers();
          await orAbort(this.#wake.promise, signal);
        }
      },
      settle: async (done: readonly Settlement[]) => {
        if (!alive()) return await never;
        for (const { block, inputs, refused = 0 } of done) {
          this.refused += refused;
          const left = this.#free.get(block)?.series ?? [];
          const rest = left.filter(({ input }) => !inputs.includes(input));
          if (rest.length !== left.length - inputs.length)
            throw new Error(`of block ${block} a series was settled before`);
          if (rest.length > 0) this.#free.set(block, Block.of(block, rest));
          else this.#free.delete(block);
        }
      },
      release: (blocks) => {
        for (const id of blocks) out.delete(id);
      },
      async [Symbol.asyncDispose]() {},
    };
  }
}

export interface LivingUploader {
  /** Kills it: from now on nothing of it continues. */
  kill(): Promise<void>;
  /** The error with which it ended by itself. */
  failure(): unknown;
}

/**
 * Starts an uploader in the time of `world`. Requests reach `sink` only while it lives; later answers do not reach it.
 */
export async function bornUploader(
  world: ManualClock,
  folder: string,
  blocks: DurableBlocks,
  sink: Pick<Sink, "send">,
  service: Record<string, unknown> = {},
): Promise<LivingUploader> {
  let dead = false;
  const whileAlive = async <T>(value: Promise<T>): Promise<T> => {
    const result = await value;
    return dead ? await never : result;
  };
  const clock: Clock = {
    now: () => world.now(),
    monotonic: () => world.monotonic(),
    sleep: (ms, signal) => (dead ? never : whileAlive(world.sleep(ms, signal))),
  };
  const runtime = testRuntime({ clock });
  const stop = new AbortController();
  const catalog = await openCatalog(join(folder, "signals.db"), runtime, stop.signal);
  const options = serviceOptions.parse({
    url: "http://127.0.0.1:1/v1",
    integration: uploadIntegration,
    auth: { basic: { password: "secret" } },
    ...service,
  });
  const uploader = await openUploader(
    {
      options,
      reader: blocks.reader(() => !dead),
      catalog,
      stateDir: join(folder, "upload"),
      agent: "tagferry/test",
      sink: {
        send: (frame, signal) => (dead ? never : whileAlive(sink.send(frame, signal))),
        async [Symbol.asyncDispose]() {},
      },
    },
    runtime,
    stop.signal,
  );
  let failure: unknown;
  uploader.run(stop.signal).catch((error: unknown) => {
    failure = error;
  });
  return {
    failure: () => failure,
    async kill() {
      dead = true;
      await catalog[Symbol.asyncDispose]();
    },
  };
}
