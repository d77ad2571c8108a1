// Reads a source for display, raw and mapped. Nothing is buffered, sent or acknowledged.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Warning } from "../../agent/status/status.ts";
import { refusalWarnings, refusedInputsOf } from "../../agent/status/warnings.ts";
import type { Config, ConfiguredSource } from "../../config/format/config.ts";
import { ambiguitiesOf } from "../../config/format/config.ts";
import type { Point } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Delivery, Reading, Source } from "../../core/source.ts";
import { isStillAhead } from "../../lib/readings/device-time.ts";
import type { InputOwners } from "../../mapping/input-owners.ts";
import type { Mapping, RefusedInput, TagState } from "../../mapping/mapping.ts";
import { openMapping } from "../../mapping/source-mapping.ts";
import { formatTimestamp } from "../../wire/timestamp.ts";

type ShadowSource = Source & Required<Pick<Source, "check">>;

/** Opens a source of a configuration without affecting an agent that runs with it. Rejects as `Driver.open` does. */
export async function openShadowSource(
  { name, driver, options, tags }: ConfiguredSource,
  { agent, file: configFile }: Config,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ShadowSource> {
  await using opened = new AsyncDisposableStack();
  const temporary = await mkdtemp(join(tmpdir(), "tagferry-scan-"));
  opened.defer(() => rm(temporary, { recursive: true, force: true }));
  const dataDir = resolve(agent.dataDir);
  const stateDir = resolve(dataDir, "sources", name);
  const own = { name, agent: agent.name, stateDir, sharedDir: dataDir, configFile, options, tags };
  const config = (await driver.shadow?.(own, temporary)) ?? { ...own, stateDir: temporary };
  const source = opened.use(await driver.open(config, runtime, signal));
  const owned = opened.move();
  return {
    deliveries: (stop) => source.deliveries(stop),
    addresses: source.addresses,
    check: async (stop) => (await source.check?.(stop)) ?? { refused: [] },
    details: () => source.details?.() ?? {},
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A reading, and what is mapped of it. `value` undefined: it gives no point. */
export interface ScanResult
  extends Pick<Reading, "tag" | "address" | "time" | "clock" | "quality">,
    Pick<TagState, "input" | "value" | "text" | "unit" | "reason"> {
  readonly source: string;
  readonly raw: Reading["value"];
  /** Whether the agent would not store it: another address feeds the Input ID, or it is invalid. */
  readonly refused: boolean;
}

/** Receives all refused inputs so far, and at the end the details of the connection. */
export type FindingsListener = (
  refused: readonly RefusedInput[],
  details?: ReturnType<NonNullable<Source["details"]>>,
) => void;

/** Yields the readings of each delivery until `signal` aborts. Throws as `Driver.open` and `Source.deliveries` do. */
export async function* scan(
  source: ConfiguredSource,
  config: Config,
  owners: InputOwners,
  onFindings: FindingsListener,
  runtime: Runtime,
  signal: AbortSignal,
): AsyncGenerator<readonly ScanResult[]> {
  // Every mapped value is shown, so `report` is switched off.
  const rules = source.rules.map((rule) => ({ ...rule, report: "off" as const }));
  const ambiguities = ambiguitiesOf(source);
  using mapping = openMapping({ source: source.name, rules, catalog: { describe() {} }, owners, ambiguities }, runtime);
  await using opened = await openShadowSource(source, config, runtime, signal);
  mapping.claim(opened.addresses ?? []);
  onFindings(mapping.refusals());
  try {
    for await (const given of opened.deliveries(signal)) {
      const delivery = { ...given, readings: given.readings.map(settled), batches: undefined };
      const points = pointsOf(delivery, mapping);
      const states = mapping.tags();
      const byInput = new Map(states.map((state) => [state.input, state]));
      // For readings without a point.
      const byAddress = new Map(states.map((state) => [`${state.tag} ${state.address}`, state]));
      const byTag = new Map(states.map((state) => [state.tag, state]));
      yield delivery.readings.map((reading, i) => {
        const { tag, captures, address } = reading;
        const point = points[i];
        const refusal = point ? undefined : mapping.refusalOf(tag, captures, address);
        const state = point ? byInput.get(point.input) : (byAddress.get(`${tag} ${address}`) ?? byTag.get(tag));
        return { ...resultOf(source.name, reading, point, refusal, state), raw: given.readings[i]?.value };
      });
      onFindings(mapping.refusals());
    }
  } finally {
    onFindings(mapping.refusals(), opened.details?.());
  }
}

/** The reading as stored with a trusted clock. Without a value: the agent would drop it. */
function settled(reading: Reading): Reading {
  const { ahead, ...rest } = reading;
  if (!ahead) return reading;
  if (!isStillAhead(ahead, reading.time)) return { ...rest, time: ahead.time, clock: "device" };
  if (ahead.otherwise === "arrival") return rest;
  const time = formatTimestamp(ahead.time);
  const reason = `the device's time ${time} is ahead of this machine's clock, so the value is not stored`;
  return { ...rest, value: undefined, quality: "bad", reason };
}

/** The point of each reading, or undefined. Readings are mapped one by one, so that each point can be assigned. */
function pointsOf({ readings, descriptions }: Delivery, mapping: Mapping): readonly (Point | undefined)[] {
  mapping.map({ readings: [], descriptions });
  return readings.map((reading) => mapping.map({ readings: [reading], descriptions: [] })[0]);
}

function resultOf(
  source: string,
  reading: Reading,
  point: Point | undefined,
  refusal: RefusedInput | undefined,
  state: TagState | undefined,
): ScanResult {
  const { tag, address, value: raw, time, clock, quality, reason } = reading;
  const value = point?.value;
  return {
    source,
    tag,
    input: point?.input ?? refusal?.input ?? state?.input ?? "",
    address,
    raw,
    value,
    text: state !== undefined && state.value === value ? state.text : undefined,
    unit: state?.unit,
    time,
    clock,
    quality,
    reason: refusal
      ? `${refusal.reason}; ${refusal.remedy}`
      : (reason ?? (point ? undefined : (state?.reason ?? "no point comes of it"))),
    refused: refusal !== undefined,
  };
}

/** How long to listen if addresses are only known from values, in milliseconds. */
const listenMs = 2_000;

/**
 * Finds addresses that would be refused, by the source's list of addresses. If an Input ID can be ambiguous without a
 * list, reads for 2 s without acknowledging. Rejects as `Source.deliveries` does.
 */
export async function refusedAddresses(
  source: ConfiguredSource,
  opened: Source,
  owners: InputOwners,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<readonly Warning[]> {
  const { name, rules } = source;
  const ambiguities = ambiguitiesOf(source);
  // Not disposed: the Input IDs stay claimed for the sources that are checked concurrently.
  const mapping = openMapping({ source: name, rules, catalog: { describe() {} }, owners, ambiguities }, runtime);
  if (opened.addresses) mapping.claim(opened.addresses);
  else if (ambiguities.size > 0) {
    const stop = AbortSignal.any([signal, AbortSignal.timeout(listenMs)]);
    for await (const delivery of opened.deliveries(stop)) mapping.map(delivery);
  }
  return refusalWarnings(refusedInputsOf(name, mapping));
}
