// Opens OPC UA sources as the agent does, and collects their deliveries.
import { join } from "node:path";
import type { Description, Reading, Source, TagGap } from "../../src/core/source.ts";
import { trustCertificate } from "../../src/source/opcua/certificates/trust.ts";
import { opcuaDriver } from "../../src/source/opcua/driver.ts";
import { eventually } from "./eventually.ts";
import { putKey } from "./opcua-key.ts";
import { type TestRuntime, testRuntime } from "./runtime.ts";

export interface OpcuaSourceSetup {
  readonly stateDir: string;
  /** The folder of the certificates; default `stateDir`. */
  readonly sharedDir?: string;
  /** The options in the configuration, including `url`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The tags in the configuration; `every` in milliseconds, default 50. */
  readonly tags: readonly Readonly<Record<string, unknown>>[];
  readonly runtime?: TestRuntime;
  /** See `DriverConfig.agent`; default `test`. */
  readonly agent?: string;
  /** See `DriverConfig.identity`. */
  readonly identity?: string;
  /** See `DriverConfig.takeover`. */
  readonly takeover?: number | undefined;
  /** Whether disposing it removes session and subscriptions at the server. */
  readonly final?: boolean;
  /** Set: opens the shadow of the source, as the commands do next to a running agent, with its state in this folder. */
  readonly shadowDir?: string;
}

/** Opens with a separate timeout. Rejects as `Driver.open` does. */
export async function openOpcuaSource({
  stateDir,
  sharedDir,
  options,
  tags,
  runtime,
  agent = "test",
  identity,
  takeover,
  final = false,
  shadowDir,
}: OpcuaSourceSetup): Promise<Source> {
  await putKey("agent", join(sharedDir ?? stateDir, "pki"));
  const config = {
    name: "line",
    agent,
    identity,
    takeover,
    stateDir,
    ...(sharedDir !== undefined && { sharedDir }),
    final: () => final,
    options: opcuaDriver.schema.parse({ timeout: "15s", ...options }),
    tags: tags.map(({ every, ...tag }) => ({ ...opcuaDriver.tag.parse(tag), every: Number(every ?? 50) })),
  };
  const opened = shadowDir === undefined ? config : ((await opcuaDriver.shadow?.(config, shadowDir)) ?? config);
  return opcuaDriver.open(opened, runtime ?? testRuntime(), AbortSignal.timeout(60_000));
}

/** The same. If the server's certificate is refused, trusts it as an operator would, and retries. */
export function openTrusting(setup: OpcuaSourceSetup): Promise<Source> {
  return trusting(setup.sharedDir ?? setup.stateDir, () => openOpcuaSource(setup));
}

/** If the server's certificate is refused, trusts it in `folder` as an operator would, and opens again. */
export async function trusting(folder: string, open: () => Promise<Source>): Promise<Source> {
  try {
    return await open();
  } catch (error) {
    const thumbprint = /trust accept ([0-9a-f]{40})/.exec(String(error))?.[1];
    if (thumbprint === undefined) throw error;
    await trustCertificate(folder, thumbprint);
    return open();
  }
}

export interface Collector extends AsyncDisposable {
  readonly source: Source;
  readonly readings: readonly Reading[];
  readonly descriptions: readonly Description[];
  /** The reported gaps. */
  readonly gaps: readonly TagGap[];
  /** How often the server has confirmed so far that it has sent all that changed. */
  readonly confirmations: number;
  /** The same for one tag. */
  confirmationsOf(tag: number): number;
  /** Resolves with the error that `deliveries` threw. */
  readonly failure: Promise<unknown>;
  /** Resolves with the first reading that matches, including earlier ones. */
  reading(fits: (reading: Reading) => boolean): Promise<Reading>;
  /** Values of a tag so far, in order. */
  values(tag: number): unknown[];
}

/** Pulls until it is disposed or the source fails. Acknowledges everything by default. */
export function collect(source: Source, { acknowledge = true } = {}): Collector {
  const stop = new AbortController();
  const readings: Reading[] = [];
  const descriptions: Description[] = [];
  const gaps: TagGap[] = [];
  const confirmed: Set<number>[] = [];
  const failure = (async () => {
    try {
      for await (const delivery of source.deliveries(stop.signal)) {
        readings.push(...delivery.readings);
        descriptions.push(...delivery.descriptions);
        gaps.push(...(delivery.gaps ?? []));
        if (delivery.alive) confirmed.push(new Set(delivery.alive.flatMap((tags) => [...tags])));
        if (acknowledge) delivery.ack();
      }
      return undefined;
    } catch (error) {
      return error;
    }
  })();
  return {
    source,
    readings,
    descriptions,
    gaps,
    get confirmations() {
      return confirmed.length;
    },
    confirmationsOf: (tag) => confirmed.filter((tags) => tags.has(tag)).length,
    failure,
    reading: (fits) => eventually(() => readings.find(fits)),
    values: (tag) => readings.filter((reading) => reading.tag === tag).map(({ value }) => value),
    async [Symbol.asyncDispose]() {
      stop.abort();
      await failure;
      await source[Symbol.asyncDispose]();
    },
  };
}
