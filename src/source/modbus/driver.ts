// The Modbus driver.
import type { Driver, Forecast } from "../../core/driver.ts";
import { connectionOf } from "./config/endpoint.ts";
import { modbusOptions, modbusTag } from "./config/options.ts";
import { otherFormats } from "./config/other-formats.ts";
import { plan } from "./config/plan.ts";
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
