// The protocol Modbus as the rest of the agent knows it.
import type { Driver } from "../../core/source.ts";
import { configFaults } from "./config/config-faults.ts";
import { modbusOptions, modbusTag } from "./config/options.ts";
import { forecastModbus } from "./polling/forecast.ts";

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
  open: async (config, runtime, signal) => (await import("./polling/open.ts")).openModbus(config, runtime, signal),
  async *browse(target, runtime, signal) {
    yield* (await import("./discovery/browse.ts")).browseModbus(target, runtime, signal);
  },
  forecast: forecastModbus,
};
