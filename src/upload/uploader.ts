// Delivers points from the buffer to the service, despite failures of network and service. Without an agent, it sends
// refused points again, for example after a limit of the service was raised.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { BufferReader } from "../core/buffer.ts";
import { AgentError, reasonOf } from "../core/errors.ts";
import type { Runtime } from "../core/runtime.ts";
import type { RequestGate, Sink } from "../core/sink.ts";
import { requestLimits } from "../wire/method.ts";
import { NetworkBytes, type Resolve } from "./client/connections.ts";
import { openCredentials } from "./client/credentials.ts";
import { MethodCaller } from "./client/method-caller.ts";
import type { ServiceOptions } from "./client/options.ts";
import { Pacer, TurnFolder } from "./client/pacer.ts";
import { openRpcClient } from "./client/rpc-client.ts";
import { serviceSink } from "./client/service-sink.ts";
import { type DeliveryStatus, uploadTally } from "./delivery/delivery-status.ts";
import { Dispatcher } from "./delivery/dispatcher.ts";
import { openLearnedLimit } from "./failures/learned-limit.ts";
import { parkedInputs } from "./failures/parked-inputs.ts";
import { RejectFiles } from "./rejects/reject-files.ts";
import { RejectReader } from "./rejects/reject-reader.ts";
import { type RejectRetry, type RetryProgress, rejectRetry } from "./rejects/reject-retry.ts";
import { openRejects } from "./rejects/rejects.ts";
import type { Catalog } from "./signals/catalog.ts";
import { PublishedItems } from "./signals/signal-files.ts";
import { SignalSync } from "./signals/signal-sync.ts";
import { type SignalWatch, signalWatch } from "./signals/signal-watch.ts";

export type { DeliveryState, DeliveryStatus, UploadFailure } from "./delivery/delivery-status.ts";

export interface UploaderParts {
  readonly options: ServiceOptions;
  /** Owned by the caller and disposed after the uploader. */
  readonly reader: BufferReader;
  /** Owned by the caller and disposed after the uploader. */
  readonly catalog: Catalog;
  /** Folder for persistent state (rejects, limits, tokens). Created if missing. */
  readonly stateDir: string;
  /** `agent.name` and version, for User-Agent. */
  readonly agent: string;
  /** Replaces the service of `options`. The caller owns it, and no metadata is saved. */
  readonly sink?: Sink;
  /** Whether the configuration contains an input or can produce it. Undefined: signals are not compared. */
  readonly configured?: (input: string) => boolean;
  /** False: points of inputs that the service does not accept are rejected. Undefined: they wait in the buffer. */
  readonly parks?: boolean;
  /** Name resolution of the service. Undefined: that of the system. */
  readonly resolve?: Resolve;
  /** Admits every request of any method. Undefined: this agent shares its rate with no other. */
  readonly gate?: RequestGate | undefined;
}

export interface Uploader extends AsyncDisposable {
  /**
   * Delivers until `signal` aborts. Then grants the request in flight 5 s, settles what was accepted, releases the rest
   * to the buffer, and resolves. Rejects with `BUFFER_*` only. Called once.
   */
  run(signal: AbortSignal): Promise<void>;
  status(): DeliveryStatus;
  /** Refused points that are sent again with the points of the buffer. */
  readonly retry: Pick<RejectRetry, "start" | "progress">;
  /** Calls of other methods, at the rate that all calls of the agent share. */
  readonly caller: MethodCaller;
}

/** Of `service.interval`, which `maxLag` includes. */
const shortestIntervalMs = 1_000;
/** Time for the request in flight when the uploader stops. */
const graceMs = 5_000;
/** Between two looks at the progress of a retry. */
const retryPollMs = 50;
/** Largest answer: 500 signals a page, each with its item up to 20 kB for many labels and states. */
const largestPage = 16 * 2 ** 20;

/** Resolves without contacting the service. Rejects with `SERVICE_UNREACHABLE` if `caFile` is unreadable. */
export async function openUploader(parts: UploaderParts, runtime: Runtime, signal: AbortSignal): Promise<Uploader> {
  signal.throwIfAborted();
  const { options, catalog, stateDir, reader, resolve, gate } = parts;
  await using opened = new AsyncDisposableStack();
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  catalog.bind(`${options.url} ${options.integration}`);
  const limitsOf = (method: "integration.insert" | "integration.saveSignals") => {
    const limits = requestLimits(method, options.apiVersion);
    return {
      maxBytes: options.limits.maxRequest ?? limits.maxRequestBytes,
      requestsPerSecond: Math.min(options.limits.requestsPerSecond, limits.requestsPerSecond),
    };
  };
  const insert = limitsOf("integration.insert");
  const save = limitsOf("integration.saveSignals");
  const tally = uploadTally(runtime, insert.requestsPerSecond);
  const turns = opened.use(new TurnFolder(stateDir, runtime.log));
  const traffic = new NetworkBytes(runtime.metrics);
  const credentials = opened.use(await openCredentials(options, join(stateDir, "token.json"), runtime, traffic));
  const { agent } = parts;
  const client = opened.use(await openRpcClient({ options, credentials, agent, resolve, traffic }, runtime));
  const sink = parts.sink ?? serviceSink(client, options.confirmation, catalog);
  const caller = new MethodCaller({ options, client, maxAnswerBytes: largestPage, turns, gateOf: () => gate }, runtime);
  const watch = openWatch(parts, caller, opened, runtime);
  const signals =
    !parts.sink && options.signals.save === "onChange"
      ? new SignalSync(
          {
            options,
            catalog,
            pacer: new Pacer(runtime.clock, save.requestsPerSecond, turns.of("integration.saveSignals"), gate),
            maxBytes: save.maxBytes,
            call: (call, ending) => client.call(call, ending),
            report: (verdict) => tally.saved(verdict),
            saved: (inputs) => watch?.saved(inputs),
            acceptedRequests: () => tally.acceptedRequests,
          },
          runtime,
        )
      : undefined;
  const files = new RejectFiles(stateDir);
  await recover(files, runtime);
  const rejects = await openRejects(files.path, runtime);
  const parked = parkedInputs(runtime);
  const retry = rejectRetry(files, rejects, parked, runtime.log);
  const dispatcher = new Dispatcher(
    {
      reader: retry.reader(reader),
      catalog,
      rejects,
      tally,
      sink,
      pacer: new Pacer(runtime.clock, insert.requestsPerSecond, undefined, gate),
      limit: await openLearnedLimit(join(stateDir, "limit.json"), insert.maxBytes, runtime),
      integration: options.integration,
      maxLagMs: options.maxLag + options.interval - shortestIntervalMs,
      intervalMs: options.interval,
      holds: (input) => signals?.holds(input) ?? false,
      parked,
      parks: parts.parks ?? true,
    },
    runtime,
  );
  const owned = opened.move();
  return {
    async run(ending) {
      try {
        await runUntil(ending, runtime, (stop, grace) => [
          dispatcher.run(stop, grace),
          signals?.run(stop, grace),
          watch?.run(stop),
        ]);
      } finally {
        await retry.end();
      }
    },
    retry,
    caller,
    status: () =>
      tally.status({
        ...dispatcher.progress(),
        rejected: retry.count,
        unkept: rejects.waiting,
        catalog,
        watch: watch?.status(),
        traffic: traffic.read(),
      }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Counts each refused point once after a retry that was killed. A failure must not prevent delivery. */
async function recover(files: RejectFiles, { log }: Runtime): Promise<void> {
  try {
    await files.recover();
  } catch (error) {
    log.warn({ reason: reasonOf(error) }, "refused points stay in the file of a retry that was killed");
  }
}

/** Undefined: the API version or the configuration does not provide for comparisons. */
function openWatch(
  { options, catalog, configured, sink, stateDir }: UploaderParts,
  caller: MethodCaller,
  opened: AsyncDisposableStack,
  runtime: Runtime,
): SignalWatch | undefined {
  const { check, publish } = options.signals;
  if (sink || !configured || options.apiVersion === "1.0" || (check === "off" && publish === "off")) return undefined;
  const target = `${options.url} ${options.integration}`;
  const published =
    publish === "off"
      ? undefined
      : opened.use(PublishedItems.open(join(stateDir, "published.db"), target, runtime.log));
  return signalWatch({ options, caller, catalog, configured, published }, runtime);
}

/** Runs tasks concurrently until `signal` aborts or one fails. `grace` aborts 5 s later. */
async function runUntil(
  signal: AbortSignal,
  { clock }: Runtime,
  tasks: (stop: AbortSignal, grace: AbortSignal) => (Promise<void> | undefined)[],
): Promise<void> {
  const stop = new AbortController();
  const grace = new AbortController();
  const over = new AbortController();
  const end = () => {
    stop.abort(signal.reason ?? new Error("the uploader stops"));
    clock.sleep(graceMs, over.signal).then(
      () => grace.abort(new Error("the uploader stops")),
      () => {},
    );
  };
  if (signal.aborted) end();
  else signal.addEventListener("abort", end, { once: true });
  try {
    const running = tasks(stop.signal, grace.signal).map(async (task) => {
      try {
        await task;
      } catch (error) {
        end();
        throw error;
      }
    });
    const results = await Promise.allSettled(running);
    for (const result of results) if (result.status === "rejected") throw result.reason;
  } finally {
    signal.removeEventListener("abort", end);
    over.abort(new Error("the uploader has stopped"));
  }
}

/** No uploader may use `stateDir` meanwhile. */
export interface RetryParts extends Pick<UploaderParts, "options" | "catalog" | "stateDir" | "agent"> {
  readonly progress: (decided: number) => void;
}

export type Retried = Pick<RetryProgress, "accepted" | "refused" | "unsendable">;

/**
 * Resolves when the service has decided on each point. Rejects with `SERVICE_UNREACHABLE` or `SERVICE_REFUSED` on the
 * first failure, or with `signal.reason`. Undecided points then stay refused. A kill loses none; the next retry may
 * send some twice, which is harmless.
 */
export async function retryRejects(
  { options, catalog, stateDir, agent, progress }: RetryParts,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Retried> {
  // Without an agent, there are no points but the refused ones.
  const reader = new RejectReader([]);
  const parts = { options, reader, catalog, stateDir, agent, parks: false };
  await using uploader = await openUploader(parts, runtime, signal);
  const { retry } = uploader;
  let retried: RetryProgress = await retry.start();
  const stop = new AbortController();
  let hasFailed = false;
  const running = uploader.run(stop.signal);
  running.catch(() => {
    hasFailed = true;
  });
  try {
    while (retried.running && !hasFailed) {
      progress(retried.accepted + retried.refused);
      const { lastError, state } = uploader.status();
      if (lastError?.current && state !== "throttled") throw new AgentError(lastError.code, lastError.message);
      await runtime.clock.sleep(retryPollMs, signal);
      retried = retry.progress ?? retried;
    }
  } finally {
    stop.abort(new Error("the retry is over"));
    await running;
  }
  return retried;
}
