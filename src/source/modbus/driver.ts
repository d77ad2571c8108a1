// The Modbus driver.
import type { OtherFormat } from "../../core/commissioning.ts";
import type { Driver, DriverTag, Forecast } from "../../core/driver.ts";
import { formatAddress } from "./config/address.ts";
import { connectionOf } from "./config/endpoint.ts";
import { modbusOptions, modbusTag } from "./config/options.ts";
import { plan } from "./config/plan.ts";
import { decodeRegisters, isRegisterTable, orders, registersOf, reorder, type ValueType } from "./config/registers.ts";
import { configFaults, type ModbusConfig, pollTargets } from "./config/tag-reads.ts";
import { gapMs, wireMs } from "./transport/serial-stream.ts";

export const modbusDriver: Driver<"modbus", typeof modbusOptions, typeof modbusTag> = {
  type: "modbus",
  summary: "reads registers and bits from Modbus devices; never writes",
  example: {
    protocol: "Modbus",
    device: "a Modbus device",
    addresses: ["tcp://host:502", "rtu:///dev/ttyUSB0"],
    entries: ['- { unit: 1, tags: [{ input: meter.voltage, at: "hr:0 u16", scale: 0.1, signal: { engUnit: V } }] }'],
  },
  schema: modbusOptions,
  tag: modbusTag,
  device: ["unit", "order", "nullValues", "timeout", "maxRegisters", "forbid"],
  faults: configFaults,
  connection: ({ url }) => connectionOf(url),
  schemes: ["tcp", "modbus", "udp", "rtu+tcp", "ascii+tcp", "rtu", "ascii"],
  // Loaded on demand, to save memory in agents without Modbus devices.
  open: async (config, runtime, signal) => (await import("./polling/open.ts")).openModbus(config, runtime, signal),
  async *browse(target, runtime, signal) {
    const { searchModbus } = await import("./discovery/search.ts");
    await using search = await searchModbus(target, runtime, signal);
    yield* search.nodes();
  },
  search: async (target, runtime, signal) =>
    (await import("./discovery/search.ts")).searchModbus(target, runtime, signal),
  probe: async (target, runtime, signal) => (await import("./discovery/probe.ts")).probeModbus(target, runtime, signal),
  otherFormats,
  findings: () => [
    {
      state: "weak",
      message: "Modbus has neither encryption nor logins",
      remedy: "keep it in a network of its own",
    },
  ],
  forecast: forecastModbus,
};

// Forecasts the load of a configuration.

/** Assumed response delay of a unit on a line in milliseconds; common devices need 5 to 50. */
const turnaroundMs = 10;

/** Includes the bus load for serial lines, derived from the baud rate and the assumed response delay. */
function forecastModbus({ options, tags }: Pick<ModbusConfig, "options" | "tags">): Forecast {
  const { url, interRequestDelay } = options;
  let readings = 0;
  let requests = 0;
  let busy = 0;
  for (const { unit, spans, limits, everyMs } of pollTargets({ options, tags })) {
    const blocks = plan(spans, limits);
    readings += (spans.flatMap((item) => item.values).length * 1_000) / everyMs;
    requests += (blocks.length * 1_000) / everyMs;
    if (url.transport !== "serial") continue;
    const pause = Math.max(gapMs(url.line), interRequestDelay) + turnaroundMs;
    for (const block of blocks) busy += (wireMs({ unit, ...block }, url) + pause) / everyMs;
  }
  const forecast = { readingsPerSecond: readings, requestsPerSecond: requests };
  return url.transport === "serial" ? { ...forecast, busLoad: busy } : forecast;
}

// What the registers of a value hold in other formats, for a person who sees a wrong value.

/** Formats of devices, with the way back from a value to its registers. */
const writers: Partial<Readonly<Record<ValueType, (view: DataView, value: number) => void>>> = {
  u16: (view, value) => view.setUint16(0, value),
  i16: (view, value) => view.setInt16(0, value),
  u32: (view, value) => view.setUint32(0, value),
  i32: (view, value) => view.setInt32(0, value),
  f32: (view, value) => view.setFloat32(0, value),
  f64: (view, value) => view.setFloat64(0, value),
};
const types: readonly ValueType[] = ["u16", "i16", "u32", "i32", "f32", "f64"];

/** Those of the usual magnitude first. Empty where `value` does not tell the registers, as with a scale factor. */
function otherFormats(
  { at, order: orderOfTag, scaleFactor }: DriverTag<typeof modbusTag>,
  value: number,
): readonly OtherFormat[] {
  const { table, address, type } = at;
  const write = writers[type];
  if (!write || scaleFactor || !isRegisterTable(table)) return [];
  const order = at.order ?? orderOfTag ?? "abcd";
  const width = registersOf[type];
  const bytes = new Uint8Array(width * 2);
  write(new DataView(bytes.buffer), value);
  const sent = new Uint8Array(width * 2);
  reorder(bytes, 0, width, order, sent);
  const found = new Map<number, string>();
  for (const other of types.filter((each) => registersOf[each] === width))
    for (const turn of orders) {
      const decoded = decodeRegisters(sent, 0, { type: other, order: turn });
      if (!decoded.ok || typeof decoded.value !== "number" || decoded.value === value || found.has(decoded.value))
        continue;
      found.set(decoded.value, formatAddress({ table, address, type: other, order: turn }));
    }
  return [...found]
    .map(([otherValue, format]) => ({ format, value: otherValue }))
    .toSorted((a, b) => magnitude(a.value) - magnitude(b.value));
}

/** Powers of ten between the value and 1. */
function magnitude(value: number): number {
  return value === 0 ? 0 : Math.abs(Math.log10(Math.abs(value)));
}
