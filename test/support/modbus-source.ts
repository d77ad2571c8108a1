// A Modbus source as the agent opens it, from the YAML-like options of a test.

import type { BrowsedNode } from "../../src/core/commissioning.ts";
import type { Runtime } from "../../src/core/runtime.ts";
import type { Reading, Source } from "../../src/core/source.ts";
import type { ModbusConfig } from "../../src/source/modbus/config/tag-reads.ts";
import { modbusDriver } from "../../src/source/modbus/driver.ts";
import { testRuntime } from "./runtime.ts";

/** A state folder that cannot be created. */
const nowhere = "/dev/null/nowhere";

export interface ModbusTagText {
  readonly at: string;
  readonly unit?: number;
  /** Milliseconds; default 50. */
  readonly every?: number;
  readonly [field: string]: unknown;
}

/** The configuration as the agent passes it to the driver: parsed, with defaults. */
export function modbusConfig(
  options: Record<string, unknown>,
  tags: readonly ModbusTagText[],
  stateDir = nowhere,
): ModbusConfig {
  return {
    name: "bus",
    agent: "test",
    stateDir,
    options: modbusDriver.schema.parse(options),
    tags: tags.map(({ every = 50, ...tag }) => ({ ...modbusDriver.tag.parse(tag), every })),
  };
}

export function openModbusSource(
  options: Record<string, unknown>,
  tags: readonly ModbusTagText[],
  runtime: Runtime,
  signal: AbortSignal,
  stateDir = nowhere,
): Promise<Source> {
  return modbusDriver.open(modbusConfig(options, tags, stateDir), runtime, signal);
}

/** Everything that `browse` finds. */
export async function browseModbusDevice(url: string, signal: AbortSignal): Promise<readonly BrowsedNode[]> {
  const nodes: BrowsedNode[] = [];
  for await (const node of modbusDriver.browse?.({ url }, testRuntime(), signal) ?? []) nodes.push(node);
  return nodes;
}

/** Pulls deliveries until `enough` is true for all readings so far, then stops polling. */
export async function readUntil(
  source: Source,
  signal: AbortSignal,
  enough: (readings: readonly Reading[]) => boolean,
): Promise<readonly Reading[]> {
  const readings: Reading[] = [];
  for await (const delivery of source.deliveries(signal)) {
    readings.push(...delivery.readings);
    delivery.ack();
    if (enough(readings)) break;
  }
  return readings;
}

/** The last reading of each tag, by tag. */
export function latest(readings: readonly Reading[]): readonly Reading[] {
  const byTag: Reading[] = [];
  for (const reading of readings) byTag[reading.tag] = reading;
  return byTag;
}

/** Whether each of `tags` tags has been read. */
export function allRead(tags: number): (readings: readonly Reading[]) => boolean {
  return (readings) => new Set(readings.map((reading) => reading.tag)).size === tags;
}
