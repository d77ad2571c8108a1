// Publishes the metadata that this agent describes, for the agent that delivers. It stays published while this agent is off.
//
// The bucket `state` holds it in parts: `signals.<node>.<number>`. A part never changes.
//
//   part 1, revision 40   a: °C, b: bar          order of a: 40, of b: 40
//   part 2, revision 57   a: K                   order of a: 57
//   part 3, revision 61   b: bar (40), a: K (57) written to replace parts 1 and 2; the orders stay
//
// The servers assign revisions, so the order of two descriptions does not depend on the clocks of the agents. If several
// agents describe one signal, the last change wins.
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { z } from "zod";
import { isAgentError } from "../../core/errors.ts";
import { type InputId, isInputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { PartialSignalMetadata, SignalCatalog } from "../../core/signal.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { type KeyBucket, type KeyEntry, keyToken } from "../connection/jetstream.ts";

export interface PublishedSignalsOptions {
  /** A bucket whose entries do not expire. */
  readonly state: KeyBucket;
  readonly node: string;
  /** The agent's own catalog, which gets each change too. */
  readonly catalog: SignalCatalog;
  /** Whether the agent's configuration has the input or can create it. */
  readonly configured: (input: string) => boolean;
}

const everyMs = 1_000;
/** Interval of checking that the servers still have what was published. */
const checkMs = 60_000;
/** With more parts than this, they are merged. */
const mostParts = 16;

export class PublishedSignals implements SignalCatalog {
  readonly #options: PublishedSignalsOptions;
  readonly #runtime: Pick<Runtime, "clock" | "log">;
  readonly #prefix: string;
  readonly #signals = new Map<InputId, DescribedSignal>();
  readonly #changed = new Set<InputId>();
  #isOpen = false;
  #parts = 0;
  #next = 1;
  #last: { readonly key: string; readonly revision: number } | undefined;
  #checkedAt = 0;
  #mustSift = true;
  #mark: string | undefined;

  constructor(options: PublishedSignalsOptions, runtime: Pick<Runtime, "clock" | "log">) {
    this.#options = options;
    this.#runtime = runtime;
    this.#prefix = partsOf(options.node);
  }

  /** Changes with what is published. Undefined: it is not known yet what is. */
  get mark(): string | undefined {
    return this.#mark;
  }

  describe(input: InputId, signal: PartialSignalMetadata): void {
    const known = this.#signals.get(input);
    if (known && JSON.stringify(known.signal) === JSON.stringify(signal)) return;
    this.#signals.set(input, { input, signal, order: undefined });
    this.#changed.add(input);
    this.#options.catalog.describe(input, signal);
  }

  /** To be called when `configured` gives other results: signals that are no longer configured are removed. */
  reconfigured(): void {
    this.#mustSift = true;
  }

  /** Publishes until `signal` aborts, then resolves. Retries on server failures. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.publish();
      } catch (error) {
        if (!isAgentError(error)) throw error;
      }
      await this.#runtime.clock.sleep(everyMs, signal).catch(() => {});
    }
  }

  /** Resolves once the servers have everything described before. Rejects as the bucket does. */
  async publish(): Promise<void> {
    if (!this.#isOpen) await this.#open();
    await this.#check();
    const isSifted = this.#mustSift && this.#sift();
    await this.#write([...this.#changed].flatMap((input) => this.#signals.get(input) ?? []));
    if (isSifted || this.#parts > mostParts) await this.#merge();
    this.#mustSift = false;
    this.#mark = String(this.#last?.revision ?? 0);
  }

  /** Continues what an earlier start has published: many signals are not described before they change. */
  async #open(): Promise<void> {
    const entries = await this.#options.state.list(this.#prefix);
    const stored = new Map<InputId, DescribedSignal>();
    for (const entry of entries.toSorted((a, b) => a.revision - b.revision)) {
      for (const one of decodePart(entry))
        if (one.order >= (stored.get(one.input)?.order ?? 0)) stored.set(one.input, one);
      this.#last = entry;
    }
    for (const [input, one] of stored) {
      const known = this.#signals.get(input);
      if (known && JSON.stringify(known.signal) !== JSON.stringify(one.signal)) continue;
      this.#changed.delete(input);
      this.#signals.set(input, one);
    }
    this.#parts = entries.length;
    this.#checkedAt = this.#runtime.clock.monotonic();
    this.#isOpen = true;
  }

  /** Publishes everything again if the servers have lost it. Orders of the lost bucket mean nothing in a new one. */
  async #check(): Promise<void> {
    const now = this.#runtime.clock.monotonic();
    if (!this.#last || now - this.#checkedAt < checkMs) return;
    const entry = await this.#options.state.get(this.#last.key);
    this.#checkedAt = now;
    if (entry?.revision === this.#last.revision) return;
    this.#runtime.log.warn({}, "the cluster has lost the metadata of signals; publishing it again");
    for (const { input, signal } of this.#signals.values()) {
      this.#signals.set(input, { input, signal, order: undefined });
      this.#changed.add(input);
    }
    this.#last = undefined;
  }

  /** Whether signals were removed that are no longer configured. */
  #sift(): boolean {
    const before = this.#signals.size;
    for (const input of this.#signals.keys())
      if (!this.#options.configured(input)) {
        this.#signals.delete(input);
        this.#changed.delete(input);
      }
    return this.#signals.size < before;
  }

  async #write(described: readonly DescribedSignal[]): Promise<void> {
    for (const { value, signals } of encodeParts(described)) {
      let key: string;
      let revision: number | undefined;
      do {
        // A part that exists has other signals, or is one of ours whose answer was lost.
        key = `${this.#prefix}${this.#next++}`;
        revision = await this.#options.state.create(key, value);
      } while (revision === undefined);
      this.#parts++;
      this.#last = { key, revision };
      for (const one of signals) {
        // It may have been described again meanwhile.
        if (this.#signals.get(one.input) !== one) continue;
        this.#signals.set(one.input, { ...one, order: one.order ?? revision });
        this.#changed.delete(one.input);
      }
    }
  }

  async #merge(): Promise<void> {
    const { state } = this.#options;
    const old = await state.list(this.#prefix);
    this.#parts = 0;
    // The keys of deleted parts are used again: the servers keep a mark for each, which every list reads.
    this.#next = 1;
    await this.#write([...this.#signals.values()]);
    for (const { key, revision } of old) await state.delete(key, revision);
    if (this.#signals.size === 0) this.#last = undefined;
  }
}

// Content and encoding of a part.

interface DescribedSignal {
  readonly input: InputId;
  readonly signal: PartialSignalMetadata;
  /** Revision of the part that first had this description. Undefined: none has it yet. */
  readonly order: number | undefined;
}

export type PublishedSignal = DescribedSignal & { readonly order: number };

/** Maximum signals in a part, and its maximum size: far below the default limit of NATS, 1 MiB. */
const partSignals = 4_096;
const partBytes = 512 * 1_024;

const partContent = z.array(
  z.tuple([
    z.string(),
    // The uploader checks the attributes one by one when it saves them.
    z.custom<PartialSignalMetadata>((value) => typeof value === "object" && value !== null),
    z.int().nullable(),
  ]),
);

export const allSignals = "signals.";
export const partsOf = (node: string) => `${allSignals}${keyToken(node)}.`;

/** The values of as many parts as the signals need. */
function* encodeParts(
  signals: readonly DescribedSignal[],
): Generator<{ readonly value: Uint8Array; readonly signals: readonly DescribedSignal[] }> {
  for (let at = 0; at < signals.length; at += partSignals) yield* encodePart(signals.slice(at, at + partSignals));
}

function* encodePart(signals: readonly DescribedSignal[]): ReturnType<typeof encodeParts> {
  const content = signals.map(({ input, signal, order }) => [input, signal, order ?? null]);
  const value = zstdCompressSync(JSON.stringify(content));
  if (value.length <= partBytes || signals.length === 1) return yield { value, signals };
  const half = signals.length >> 1;
  yield* encodePart(signals.slice(0, half));
  yield* encodePart(signals.slice(half));
}

/** Empty for a part of another version. */
export function decodePart({ value, revision }: KeyEntry): readonly PublishedSignal[] {
  const content = attempt(() => partContent.parse(JSON.parse(String(zstdDecompressSync(value))))) ?? [];
  return content.flatMap(([input, signal, order]) =>
    isInputId(input) ? [{ input, signal, order: order ?? revision }] : [],
  );
}
