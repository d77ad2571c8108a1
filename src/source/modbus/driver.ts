// The protocol Modbus as the rest of the agent knows it.
import type { Driver } from "../../core/source.ts";
import { configFaults } from "./config-faults.ts";
import { forecastModbus } from "./forecast.ts";
import { modbusOptions, modbusTag } from "./options.ts";

export const modbusDriver: Driver<"modbus", typeof modbusOptions, typeof modbusTag> = {
  type: "modbus",
  summary: "reads registers and bits from Modbus devices; never writes",
  schema: modbusOptions,
  tag: modbusTag,
  device: ["unit", "order", "nullValues", "timeout", "maxRegisters", "forbid"],
  faults: configFaults,
  connection: ({ url }) => (url.transport === "serial" ? url.line.path : `${url.host.toLowerCase()}:${url.port}`),
  schemes: ["tcp", "modbus", "udp", "rtu+tcp", "ascii+tcp", "rtu", "ascii"],
  // Loaded when it is needed: an agent without Modbus devices does not carry it.
  open: async (config, runtime, signal) => (await import("./open.ts")).openModbus(config, runtime, signal),
  async *browse(target, runtime, signal) {
    yield* (await import("./browse.ts")).browseModbus(target, runtime, signal);
  },
  forecast: forecastModbus,
};
