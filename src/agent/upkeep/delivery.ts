// Keeps the uploader running as long as the agent runs. Failures are shown in the status and retried.
import { join } from "node:path";
import type { BufferReader, PointBuffer } from "../../core/buffer.ts";
import { AgentError, isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import type { EpochMicros, InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { RequestGate, Sink } from "../../core/sink.ts";
import { isAbort, orAbort } from "../../lib/flow/abort.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import { Since } from "../../lib/time/clock.ts";
import type { RetryProgress } from "../../upload/rejects/reject-retry.ts";
import { type ItemSeries, itemSeries, spanBefore } from "../../upload/signals/item-data.ts";
import type { DeliveryStatus, Uploader, UploaderParts } from "../../upload/uploader.ts";

export interface DeliveryParts
  extends Pick<UploaderParts, "options" | "catalog" | "agent">,
    Required<Pick<UploaderParts, "configured">> {
  /** The source of points if `lead` is undefined. */
  readonly buffer: PointBuffer;
  readonly dataDir: string;
  /** Undefined: the service of `options`. */
  readonly sink?: Sink | undefined;
  /** Delivery starts once this resolves. */
  readonly after: Promise<void>;
  /**
   * Resolves when this agent's term in the cluster begins. `isFailing`: whether delivery, once begun, finds the service
   * unreachable. Undefined: it always delivers from its buffer.
   */
  readonly lead?: ((signal: AbortSignal, isFailing: () => boolean) => Promise<DeliveryTerm>) | undefined;
}

/** A period in which this agent delivers, in a cluster for all its agents. Disposing it lets another agent follow. */
export interface DeliveryTerm extends AsyncDisposable {
  readonly reader: BufferReader;
  readonly gate?: RequestGate;
  /** Aborts when the term ends. */
  readonly signal?: AbortSignal;
}

/** Why there is no uploader. The uploader reports its own errors itself. */
export interface DeliveryOutage {
  readonly message: string;
  readonly hint: string | undefined;
  readonly since: EpochMicros;
}

export type RunningDelivery = ReturnType<typeof startDelivery>;
export type UploaderCalls = RunningDelivery["calls"];

/** Runs from its creation. Disposing it gives the request in flight 5 s and returns all leases to the buffer. */
export function startDelivery(parts: DeliveryParts, runtime: Runtime) {
  const log = runtime.log.child({ part: "upload" });
  const stop = new AbortController();
  const backOff = new BackOff({ minMs: 1_000, maxMs: 60_000, random: runtime.random });
  let uploader: Uploader | undefined;
  let outage: DeliveryOutage | undefined;

  const isFailing = () => uploader?.status().state === "unreachable";

  /** Runs one term. Without a cluster, it lasts until the agent stops. */
  async function deliver(): Promise<void> {
    const { options, catalog, agent, sink, configured, lead } = parts;
    await using term = lead ? await lead(stop.signal, isFailing) : await termOf(parts.buffer);
    const { reader, gate } = term;
    const ending = term.signal ? AbortSignal.any([stop.signal, term.signal]) : stop.signal;
    const stateDir = join(parts.dataDir, "upload");
    const { openUploader } = await import("../../upload/uploader.ts");
    try {
      await using opened = await openUploader(
        { options, reader, catalog, stateDir, agent, configured, gate, ...(sink && { sink }) },
        runtime,
        ending,
      );
      uploader = opened;
      outage = undefined;
      backOff.reset();
      await opened.run(ending);
    } catch (error) {
      // The next holder repeats the request in flight and handles its result.
      if (!term.signal?.aborted) throw error;
      log.info({ reason: reasonOf(error) }, "this agent does not deliver for the cluster any more");
    } finally {
      uploader = undefined;
    }
  }

  async function deliverForEver(): Promise<void> {
    await orAbort(parts.after, stop.signal).catch(() => {}); // the loop below checks `stop`
    while (!stop.signal.aborted) {
      try {
        await deliver();
      } catch (error) {
        if (isAbort(error, stop.signal)) return;
        const waitMs = backOff.next();
        const [message, hint] = [reasonOf(error), remedyOf(error)];
        const code = isAgentError(error) ? error.code : undefined;
        if (code?.startsWith("CLUSTER_"))
          log.warn({ code, reason: message }, "cannot begin to deliver for the cluster");
        else {
          const began = new Since(runtime.clock);
          outage = {
            message,
            hint,
            get since() {
              return began.time;
            },
          };
          const fields = { code, hint, err: error, retryInMs: Math.round(waitMs) };
          log.error(fields, "nothing is delivered, points stay in the buffer");
        }
        await runtime.clock.sleep(waitMs, stop.signal).catch(() => {});
      }
    }
  }

  function runningUploader(consequence = ""): Uploader {
    if (uploader) return uploader;
    throw new AgentError("SERVICE_UNREACHABLE", `this agent does not deliver at present${consequence}`);
  }

  /** What the page and the commands request. Rejects with `SERVICE_UNREACHABLE` if no uploader is running. */
  const calls = {
    /** The stored values of an input over the last `spanMs` milliseconds, from the service. Rejects as `itemSeries` does. */
    async series(input: string, spanMs: number, signal: AbortSignal): Promise<ItemSeries> {
      const { caller } = runningUploader();
      const id = parts.catalog.entry(input as InputId)?.id; // any other text has no entry
      if (id === undefined) throw new AgentError("SERVICE_UNREACHABLE", `the service has no signal ${input} yet`);
      const span = spanBefore(runtime.clock.now(), spanMs);
      return await itemSeries(caller, { input: input as InputId, id }, span, signal);
    },
    /** Sends refused points again with the next requests. Resolves once they wait. */
    async retryRejects(): Promise<RetryProgress> {
      return await runningUploader(", so refused points cannot be sent again").retry.start();
    },
    /** The last retry of refused points. Undefined: none since delivery began. */
    rejectRetry: (): RetryProgress | undefined => uploader?.retry.progress,
  };
  const running = deliverForEver();
  return {
    /** Undefined: no uploader is running; see `outage`. */
    status: (): DeliveryStatus | undefined => uploader?.status(),
    get outage(): DeliveryOutage | undefined {
      return outage;
    },
    calls,
    async [Symbol.asyncDispose](): Promise<void> {
      stop.abort(new Error("the agent stops"));
      await running;
    },
  };
}

async function termOf(buffer: PointBuffer): Promise<DeliveryTerm> {
  const reader = await buffer.reader();
  return { reader, [Symbol.asyncDispose]: () => reader[Symbol.asyncDispose]() };
}
