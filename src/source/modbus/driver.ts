// The protocol Modbus as the rest of the agent knows it.
import type { Driver } from "../../core/source.ts";
import { configFaults } from "./config/config-faults.ts";
import { modbusOptions, modbusTag } from "./config/options.ts";
import { forecastModbus } from "./polling/forecast.ts";

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
  connection: ({ url }) => (url.transport === "serial" ? url.line.path : `${url.host.toLowerCase()}:${url.port}`),
  schemes: ["tcp", "modbus", "udp", "rtu+tcp", "ascii+tcp", "rtu", "ascii"],
  // Loaded when it is needed: an agent without Modbus devices does not carry it.
  open: async (config, runtime, signal) => (await import("./polling/open.ts")).openModbus(config, runtime, signal),
  async *browse(target, runtime, signal) {
    yield* (await import("./discovery/browse.ts")).browseModbus(target, runtime, signal);
  },
  probe: async (target, runtime, signal) => (await import("./discovery/probe.ts")).probeModbus(target, runtime, signal),
  findings: () => [
    {
      state: "weak",
      message: "Modbus has neither encryption nor logins",
      remedy: "keep it in a network of its own",
    },
  ],
  forecast: forecastModbus,
};
