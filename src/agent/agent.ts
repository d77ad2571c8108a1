// Puts the parts together, starts them in order and stops them in reverse.
import { join } from "node:path";
import { openBuffer as openDiskBuffer } from "../buffer/registry.ts";
import type { Config, ConfiguredSource } from "../config/config.ts";
import type { PointBuffer } from "../core/buffer.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Sink } from "../core/sink.ts";
import { orAbort } from "../lib/abort.ts";
import { type InputOwners, inputOwners } from "../mapping/input-owners.ts";
import type { Mapping } from "../mapping/mapping.ts";
import { openMapping } from "../mapping/mapping.ts";
import { type Catalog, openCatalog } from "../upload/catalog.ts";
import { startDelivery } from "./delivery.ts";
import { runPipeline } from "./pipeline.ts";
import { snapshot } from "./snapshot.ts";
import { SourceMonitor } from "./source-monitor.ts";
import type { Status } from "./status.ts";

export interface AgentOptions {
  readonly version: string;
  /** What opens the buffer; `buffer/registry` unless a test puts something before it. */
  readonly openBuffer?: typeof openDiskBuffer;
  /** Where points go; the service of the configuration unless a test puts something else. */
  readonly sink?: Sink;
}

/**
 * The running agent. Disposing it stops the sources, stores what they had read, gives the request in flight 5 s and
 * closes the buffer; what is not delivered stays on disk.
 */
export interface Agent extends AsyncDisposable {
  status(): Status;
  /** Whether it makes progress on its own side. An unreachable service or a dead device is no ill health. */
  health(): { readonly ok: boolean; readonly reason?: string };
}

/** One source as it runs. */
export interface RunningSource extends AsyncDisposable {
  readonly monitor: SourceMonitor;
  readonly mapping: Mapping;
}

/** How long a source may take to stop before it is left behind, in milliseconds. */
const stopWithinMs = 5_000;

/**
 * Resolves once the buffer is open and the sources are started; what they and the service do from then on shows in
 * `status`. Rejects with `DATA_DIR_IN_USE`, `DATA_DIR_UNWRITABLE`, `BUFFER_NEWER` or with `signal.reason`.
 */
export async function openAgent(
  config: Config,
  options: AgentOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Agent> {
  const { dataDir, name } = config.agent;
  await using opened = new AsyncDisposableStack();
  const open = options.openBuffer ?? openDiskBuffer;
  const buffer = opened.use(
    await open(
      { directory: join(dataDir, "buffer"), integration: config.service.integration, config: config.buffer },
      runtime,
      signal,
    ),
  );
  const catalog = opened.use(await openCatalog(join(dataDir, "signals.db"), runtime, signal));
  const delivery = opened.use(
    startDelivery(
      {
        options: config.service,
        buffer,
        catalog,
        dataDir,
        agent: `tagferry/${options.version} (${name})`,
        sink: options.sink,
      },
      runtime,
    ),
  );
  const owners = inputOwners();
  const sources = config.sources.map((source) => startSource(source, { config, buffer, catalog, owners }, runtime));
  opened.defer(async () => {
    // The request in flight and the sources have their time side by side, not one after the other.
    await Promise.all([delivery, ...sources].map((part) => part[Symbol.asyncDispose]()));
  });
  const startedAt = runtime.clock.now();
  const started = runtime.clock.monotonic();
  const owned = opened.move();
  return {
    status: () =>
      snapshot({
        time: runtime.clock.now(),
        agent: { name, version: options.version, startedAt, uptimeMs: Math.round(runtime.clock.monotonic() - started) },
        config,
        sources,
        buffer: buffer.stats(),
        delivery,
      }),
    health() {
      const { degraded } = buffer.stats();
      return degraded === undefined ? { ok: true } : { ok: false, reason: `points cannot be stored: ${degraded}` };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

interface SourceParts {
  readonly config: Config;
  readonly buffer: PointBuffer;
  readonly catalog: Catalog;
  readonly owners: InputOwners;
}

function startSource(
  source: ConfiguredSource,
  { config, buffer, catalog, owners }: SourceParts,
  runtime: Runtime,
): RunningSource {
  const { name, driver, options, tags, rules } = source;
  const { url } = options as { readonly url?: unknown };
  const own: Runtime = { ...runtime, log: runtime.log.child({ part: "source", source: name, driver: driver.type }) };
  const mapping = openMapping({ source: name, rules, catalog, owners }, own);
  const monitor = new SourceMonitor(
    { name, type: driver.type, tags: tags.length, ...(typeof url === "string" && { url: withoutPassword(url) }) },
    runtime,
  );
  const stop = new AbortController();
  const driverConfig = {
    name,
    agent: config.agent.name,
    stateDir: join(config.agent.dataDir, "sources", name),
    options,
    tags,
  };
  const running = runPipeline(
    { open: (given, signal) => driver.open(driverConfig, given, signal), mapping, buffer, monitor },
    own,
    stop.signal,
  ).catch((error: unknown) => own.log.error({ err: error }, "the pipeline ended unexpectedly"));
  return {
    monitor,
    mapping,
    async [Symbol.asyncDispose]() {
      using _mapping = mapping;
      stop.abort(new Error("the agent stops"));
      try {
        await orAbort(running, AbortSignal.timeout(stopWithinMs));
      } catch {
        own.log.warn({ afterMs: stopWithinMs }, "the source did not stop in time and is left behind");
      }
    },
  };
}

/** An address as it may be shown. */
function withoutPassword(url: string): string {
  return url.replace(/\/\/[^/@]*@/, "//***@");
}
