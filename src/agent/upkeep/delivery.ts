// Keeps the uploader running for as long as the agent does: what stands in its way is shown and tried again.
import { join } from "node:path";
import type { PointBuffer } from "../../core/buffer.ts";
import { isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Sink } from "../../core/sink.ts";
import { isAbort, orAbort } from "../../lib/abort.ts";
import { BackOff } from "../../lib/back-off.ts";
import { Since } from "../../lib/since.ts";
import type { ServiceOptions } from "../../upload/client/options.ts";
import type { Catalog } from "../../upload/signals/catalog.ts";
import { type DeliveryStatus, openUploader, type Uploader } from "../../upload/uploader.ts";

export interface DeliveryParts {
  readonly options: ServiceOptions;
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

  async function deliver(): Promise<void> {
    await using reader = await parts.buffer.reader();
    const { options, catalog, agent, sink, configured } = parts;
    const stateDir = join(parts.dataDir, "upload");
    await using opened = await openUploader(
      { options, reader, catalog, stateDir, agent, configured, ...(sink && { sink }) },
      runtime,
      stop.signal,
    );
    uploader = opened;
    standstill = undefined;
    backOff.reset();
    await opened.run(stop.signal);
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
      } finally {
        uploader = undefined;
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
