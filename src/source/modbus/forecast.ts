// What reading a configuration costs, before anything is asked.
import type { Forecast } from "../../core/source.ts";
import { plan } from "./plan.ts";
import type { ModbusConfig } from "./wanted.ts";
import { pollTargets } from "./wanted.ts";

export function forecastModbus(config: Pick<ModbusConfig, "options" | "tags">): Forecast {
  let readings = 0;
  let requests = 0;
  for (const { wanted, limits, everyMs } of pollTargets(config)) {
    readings += (wanted.length * 1_000) / everyMs;
    requests += (plan(wanted, limits).length * 1_000) / everyMs;
  }
  return { readingsPerSecond: readings, requestsPerSecond: requests };
}
