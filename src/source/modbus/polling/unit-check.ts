// Checks for commissioning which units answer and which addresses they refuse.

import { epochMicros } from "../../../core/point.ts";
import type { Clock } from "../../../core/runtime.ts";
import type { ConfigFault, DeviceCheck, SourceCheck } from "../../../core/source.ts";
import { readingsOf } from "../../../lib/readings/reading-batch.ts";
import { formatDuration } from "../../../lib/time/duration.ts";
import { consequenceOf, describeException } from "../config/pdu.ts";
import { places, plan, type ReadBlock } from "../config/plan.ts";
import type { PollTarget, TagSpan } from "../config/tag-reads.ts";
import type { ModbusConnection } from "../connection/modbus-connection.ts";
import { describeContested, type Result } from "../connection/result.ts";
import { decodeBlock } from "./readings.ts";
import { slowAnswers } from "./unit-reader.ts";

/** Values of a unit that are tried if the first ones fail. */
const triedValues = 4;
/** Time-outs to wait for the last value, as the unit may be slow. */
const patience = 3;
/** Time limits for `check --online`, which ends after a minute: first only one value per unit is tried, then none. */
const thoroughForMs = 25_000;
const anyForMs = 50_000;

/**
 * Resolves within about a minute with one check per unit, and all refused addresses. `hint`: possible reasons for a
 * silent unit. Rejects like `ModbusConnection.read`.
 */
export async function checkUnits(
  targets: readonly PollTarget[],
  link: Pick<ModbusConnection, "read">,
  { hint, url }: { readonly hint: string; readonly url: string },
  clock: Pick<Clock, "monotonic">,
  signal: AbortSignal,
): Promise<SourceCheck & Required<Pick<SourceCheck, "devices">>> {
  const answering = new Set<number>();
  const startedAt = clock.monotonic();
  const read = (unit: number, { table, start, count }: ReadBlock<TagSpan>, timeoutMs: number) =>
    link.read({ unit, table, start, count }, timeoutMs, signal, false);

  async function checkUnit(unit: number, ofUnit: readonly PollTarget[]): Promise<DeviceCheck> {
    const device = `unit ${unit}`;
    const elapsed = clock.monotonic() - startedAt;
    const timeoutMs = Math.max(...ofUnit.map((target) => target.timeoutMs));
    if (elapsed + timeoutMs > anyForMs && unit !== targets[0]?.unit) return notRequested(device);
    const isThorough = elapsed <= thoroughForMs;
    const all = spread(ofUnit.flatMap(({ spans }) => places({ items: spans })));
    const tried = isThorough ? all : all.slice(0, 1);
    let failure: Omit<DeviceCheck, "device" | "ok"> = { text: "has no tags" };
    for (const [i, block] of tried.entries()) {
      const isLast = i === tried.length - 1;
      const waitMs = isLast && isThorough ? timeoutMs * patience : timeoutMs;
      const result = await read(unit, block, waitMs);
      const slowMs = ("tookMs" in result ? result.tookMs : "lateMs" in result ? result.lateMs : undefined) ?? 0;
      if (slowMs > timeoutMs) return { device, ok: false, text: slowAnswers(slowMs) };
      // A refusal shows that the unit is present, which is more informative than a later silence.
      if (result.kind === "data" || result.kind === "exception") answering.add(unit);
      if (result.kind === "data") return { device, ok: true, text: shown(block, result.bytes) };
      if (result.kind === "exception" || !answering.has(unit)) failure = failureOf(result, block, waitMs, hint);
    }
    return { device, ok: false, ...failure };
  }

  /** Reads `block` as a whole, and each place separately if the unit refuses it. */
  async function refusedIn(block: ReadBlock<TagSpan>, target: PollTarget): Promise<readonly ConfigFault[]> {
    const { unit, timeoutMs } = target;
    const result = await read(unit, block, timeoutMs);
    if (result.kind !== "exception" || !["split", "unsupported"].includes(consequenceOf(result.code))) return [];
    const alone = places(block);
    const faults: ConfigFault[] = [];
    if (alone.length > 1) for (const each of alone) faults.push(...(await refusedIn(each, target)));
    else
      for (const { tag, address } of block.items.flatMap(({ values }) => values))
        faults.push({
          tag,
          field: "at",
          message: `expected an address of unit ${unit}, got ${describeException(result.code)}, for ${address}`,
          hint: `tagferry browse ${url} lists what the device has`,
        });
    return faults;
  }

  const devices: DeviceCheck[] = [];
  for (const [unit, ofUnit] of Map.groupBy(targets, (target) => target.unit))
    devices.push(await checkUnit(unit, ofUnit));
  const refused: ConfigFault[] = [];
  for (const target of targets.filter(({ unit }) => answering.has(unit)))
    for (const block of plan(target.spans, target.limits)) {
      if (clock.monotonic() - startedAt + target.timeoutMs > anyForMs) break;
      refused.push(...(await refusedIn(block, target)));
    }
  return { devices, refused };
}

function notRequested(device: string): DeviceCheck {
  const remedy = "see to the units that do not answer, or leave them out, and check again";
  return { device, ok: false, text: "was not asked: the units before it took all the time", remedy };
}

function failureOf(
  result: Exclude<Result, { kind: "data" }>,
  { table, start }: ReadBlock<TagSpan>,
  waitMs: number,
  hint: string,
): Omit<DeviceCheck, "device" | "ok"> {
  if (result.kind === "exception")
    return {
      text: `answers ${table}:${start} with ${describeException(result.code)}`,
      remedy: "tagferry browse shows which addresses the device has",
    };
  if (result.kind === "contested") return { text: describeContested(result), remedy: "let one master poll the bus" };
  if (result.closed !== undefined) {
    const remedy = `the device may allow fewer connections than there are clients: end one of the others; or ${hint}`;
    return { text: `did not answer: ${result.closed}`, remedy };
  }
  const instead = result.mismatch === undefined ? "" : `; what came instead had ${result.mismatch}`;
  return { text: `did not answer within ${formatDuration(waitMs)}${instead}`, remedy: hint };
}

/** Evenly spaced blocks including the first and last, as adjacent ones often exist or fail together. */
function spread(all: readonly ReadBlock<TagSpan>[]): readonly ReadBlock<TagSpan>[] {
  if (all.length <= triedValues) return all;
  const step = (all.length - 1) / (triedValues - 1);
  return Array.from({ length: triedValues }, (_, i) => all[Math.round(i * step)]!);
}

/** Example: `hr:0 u16 is 2301`. */
function shown(block: ReadBlock<TagSpan>, bytes: Uint8Array): string {
  const [reading] = readingsOf([decodeBlock(block, bytes, epochMicros(0))]);
  if (!reading) return "answers";
  return `${reading.address} is ${reading.value ?? `bad: ${reading.reason}`}`;
}
