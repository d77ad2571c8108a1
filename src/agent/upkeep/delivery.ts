// Keeps the uploader running for as long as the agent does: what stands in its way is shown and tried again.
import { join } from "node:path";
import type { BufferReader, PointBuffer } from "../../core/buffer.ts";
import { isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { RequestGate, Sink } from "../../core/sink.ts";
import { isAbort, orAbort } from "../../lib/abort.ts";
import { BackOff } from "../../lib/back-off.ts";
import { Since } from "../../lib/since.ts";
import type { ServiceOptions } from "../../upload/client/options.ts";
import type { Catalog } from "../../upload/signals/catalog.ts";
import { type DeliveryStatus, openUploader, type Uploader } from "../../upload/uploader.ts";

export interface DeliveryParts {
  readonly options: ServiceOptions;
  /** Delivered from where `lead` is undefined. */
  readonly buffer: PointBuffer;
  readonly catalog: Catalog;
  readonly dataDir: string;
  /** Name and version, for User-Agent. */
  readonly agent: string;
  /** Whether the configuration has an input, or may give rise to it. */
  readonly configured: (input: string) => boolean;
  /** Undefined: the service of `options`. */
  readonly sink?: Sink | undefined;
  /** Nothing is delivered before. */
  readonly after: Promise<void>;
  /** Resolves when it is the turn of this agent to deliver for its cluster. Undefined: it always delivers, from its buffer. */
  readonly lead?: ((signal: AbortSignal) => Promise<DeliveryTerm>) | undefined;
}

/** A time in which this agent delivers, for all agents of its cluster if it has one. Disposing it lets another one follow. */
export interface DeliveryTerm extends AsyncDisposable {
  readonly reader: BufferReader;
  readonly gate?: RequestGate;
  /** Aborts when the term is over. */
  readonly signal?: AbortSignal;
}

/** Why nothing is delivered at all, as opposed to what the uploader itself reports. */
export interface Standstill {
  readonly message: string;
  readonly hint: string | undefined;
  readonly since: EpochMicros;
}

/** Started when made. Disposing it gives the request in flight 5 s and resolves when all is given back to the buffer. */
export interface RunningDelivery extends AsyncDisposable {
  /** Undefined: there is no uploader now, see `standstill`. */
  status(): DeliveryStatus | undefined;
  readonly standstill: Standstill | undefined;
}

export function startDelivery(parts: DeliveryParts, runtime: Runtime): RunningDelivery {
  const log = runtime.log.child({ part: "upload" });
  const stop = new AbortController();
  const backOff = new BackOff({ minMs: 1_000, maxMs: 60_000, random: runtime.random });
  let uploader: Uploader | undefined;
  let standstill: Standstill | undefined;

  /** One term, which without a cluster lasts as long as the agent runs. */
  async function deliver(): Promise<void> {
    const { options, catalog, agent, sink, configured, lead } = parts;
    await using term = lead ? await lead(stop.signal) : await termOf(parts.buffer);
    const { reader, gate } = term;
    const ending = term.signal ? AbortSignal.any([stop.signal, term.signal]) : stop.signal;
    const stateDir = join(parts.dataDir, "upload");
    try {
      await using opened = await openUploader(
        { options, reader, catalog, stateDir, agent, configured, gate, ...(sink && { sink }) },
        runtime,
        ending,
      );
      uploader = opened;
      standstill = undefined;
      backOff.reset();
      await opened.run(ending);
    } catch (error) {
      // What the request in flight has brought belongs to the next holder, which repeats it.
      if (!term.signal?.aborted) throw error;
      log.info({ reason: reasonOf(error) }, "another agent of the cluster delivers now");
    } finally {
      uploader = undefined;
    }
  }

  async function deliverForEver(): Promise<void> {
    await orAbort(parts.after, stop.signal).catch(() => {}); // the loop below sees why
    while (!stop.signal.aborted) {
      try {
        await deliver();
      } catch (error) {
        if (isAbort(error, stop.signal)) return;
        const waitMs = backOff.next();
        const known = isAgentError(error) ? error : undefined;
        if (known?.code.startsWith("CLUSTER_")) {
          log.warn({ code: known.code, reason: reasonOf(error) }, "cannot begin to deliver for the cluster");
          await runtime.clock.sleep(waitMs, stop.signal).catch(() => {});
          continue;
        }
        const hint = remedyOf(error);
        const began = new Since(runtime.clock);
        standstill = {
          message: reasonOf(error),
          hint,
          get since() {
            return began.time;
          },
        };
        log.error(
          { code: known?.code, hint, err: error, retryInMs: Math.round(waitMs) },
          "nothing is delivered, points stay in the buffer",
        );
        await runtime.clock.sleep(waitMs, stop.signal).catch(() => {});
      }
    }
  }

  const running = deliverForEver();
  return {
    status: () => uploader?.status(),
    get standstill() {
      return standstill;
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("the agent stops"));
      await running;
    },
  };
}

async function termOf(buffer: PointBuffer): Promise<DeliveryTerm> {
  const reader = await buffer.reader();
  return { reader, [Symbol.asyncDispose]: () => reader[Symbol.asyncDispose]() };
}
