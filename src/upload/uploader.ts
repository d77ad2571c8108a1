// Takes points from the buffer and has the service store them, whatever network and service do meanwhile.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { BufferReader } from "../core/buffer.ts";
import type { Runtime } from "../core/runtime.ts";
import type { RequestGate, Sink } from "../core/sink.ts";
import { requestLimits } from "../wire/method.ts";
import { openCredentials } from "./client/client-credentials.ts";
import type { Resolve } from "./client/connections.ts";
import { MethodCaller } from "./client/method-caller.ts";
import type { ServiceOptions } from "./client/options.ts";
import { Pacer, TurnFolder } from "./client/pacer.ts";
import { RpcClient } from "./client/rpc-client.ts";
import { serviceSink } from "./client/service-sink.ts";
import { type DeliveryStatus, UploadTally } from "./delivery/delivery-status.ts";
import { Dispatcher } from "./delivery/dispatcher.ts";
import { LearnedLimit } from "./delivery/learned-limit.ts";
import { Rejects } from "./delivery/rejects.ts";
import type { Catalog } from "./signals/catalog.ts";
import { PublishedItems } from "./signals/published-items.ts";
import { SignalSync } from "./signals/signal-sync.ts";
import { SignalWatch } from "./signals/signal-watch.ts";

export type { DeliveryState, DeliveryStatus, UploadFailure } from "./delivery/delivery-status.ts";

export interface UploaderParts {
  readonly options: ServiceOptions;
  /** Owned by the caller and disposed after the uploader. */
  readonly reader: BufferReader;
  /** Owned by the caller and disposed after the uploader. */
  readonly catalog: Catalog;
  /** Folder for what the uploader must remember (rejects, limits, tokens); made when missing. */
  readonly stateDir: string;
  /** `agent.name` and version, for User-Agent. */
  readonly agent: string;
  /** Undefined: the service of `options`. Where it is given it stays the caller's, and no metadata are saved. */
  readonly sink?: Sink;
  /** Whether the configuration has an input, or may give rise to it. Undefined: signals are not looked after. */
  readonly configured?: (input: string) => boolean;
  /** False: points of inputs that the service does not take are refused for good. Undefined: they wait in the buffer. */
  readonly parks?: boolean;
  /** Undefined: the name of the service leads where the system says. */
  readonly resolve?: Resolve;
  /** Every request of any method passes it in its turn. Undefined: this agent shares the rate with no other. */
  readonly gate?: RequestGate | undefined;
}

export interface Uploader extends AsyncDisposable {
  /**
   * Delivers until `signal` aborts, then gives the request in flight 5 s, settles what was accepted, releases the rest to
   * the buffer and resolves. Rejects only with `BUFFER_*`. Called once.
   */
  run(signal: AbortSignal): Promise<void>;
  status(): DeliveryStatus;
}

/** How long the request in flight may take when the uploader stops. */
const graceMs = 5_000;
/** A signal and its item take 20 kB where their labels and states are many; a page has 500. */
const largestPage = 16 * 2 ** 20;

/** Resolves without a word to the service: whether it answers shows in `status`. Rejects with `SERVICE_UNREACHABLE` when `caFile` cannot be read. */
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
  const tally = new UploadTally(runtime, insert.requestsPerSecond);
  const turns = opened.use(new TurnFolder(stateDir, runtime.log));
  const credentials = opened.use(await openCredentials(options, join(stateDir, "token.json"), runtime));
  const client = opened.use(await RpcClient.open({ options, credentials, agent: parts.agent, resolve }, runtime));
  const sink = parts.sink ?? serviceSink(client, options.confirmation, catalog);
  const watch = openWatch(parts, client, turns, opened, runtime);
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
          },
          runtime,
        )
      : undefined;
  const rejects = await Rejects.open(join(stateDir, "rejects.ndjson"), runtime);
  const dispatcher = new Dispatcher(
    {
      reader,
      catalog,
      rejects,
      tally,
      sink,
      pacer: new Pacer(runtime.clock, insert.requestsPerSecond, undefined, gate),
      limit: await LearnedLimit.open(join(stateDir, "limit.json"), insert.maxBytes, runtime),
      integration: options.integration,
      maxLagMs: options.maxLag,
      holds: (input) => signals?.holds(input) ?? false,
      parks: parts.parks ?? true,
    },
    runtime,
  );
  const owned = opened.move();
  return {
    run: (ending) =>
      runUntil(ending, runtime, (stop, grace) => [
        dispatcher.run(stop, grace),
        signals?.run(stop, grace),
        watch?.run(stop),
      ]),
    status: () =>
      tally.status({
        ...dispatcher.progress(),
        rejected: rejects.count,
        unkept: rejects.waiting,
        catalog,
        watch: watch?.status(),
      }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Looks after the signals where the version and the configuration have it. */
function openWatch(
  { options, catalog, configured, sink, stateDir, gate }: UploaderParts,
  client: RpcClient,
  turns: TurnFolder,
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
  const caller = new MethodCaller({ options, client, maxAnswerBytes: largestPage, turns, gate }, runtime);
  return new SignalWatch({ options, caller, catalog, configured, published }, runtime);
}

/** Runs tasks side by side until `signal` aborts or one of them fails; `grace` aborts 5 s after that. */
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
