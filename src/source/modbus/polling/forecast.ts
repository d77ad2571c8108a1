// What reading a configuration costs, before anything is asked.
import type { Forecast } from "../../../core/source.ts";
import { plan } from "../config/plan.ts";
import type { ModbusConfig } from "../config/wanted.ts";
import { pollTargets } from "../config/wanted.ts";
import { gapMs, wireMs } from "../connection/serial-timing.ts";

/** Milliseconds that a unit on a line takes to begin its answer; common devices need 5 to 50. */
const turnaroundMs = 10;

/** The load of the bus is told for serial lines, where it follows from the baud rate; a unit is taken to begin its answer within 10 ms. */
export function forecastModbus({ options, tags }: Pick<ModbusConfig, "options" | "tags">): Forecast {
  const { url, interRequestDelay } = options;
  let readings = 0;
  let requests = 0;
  let busy = 0;
  for (const { unit, wanted, limits, everyMs } of pollTargets({ options, tags })) {
    const blocks = plan(wanted, limits);
    readings += (wanted.flatMap((item) => item.values).length * 1_000) / everyMs;
    requests += (blocks.length * 1_000) / everyMs;
    if (url.transport !== "serial") continue;
    const pause = Math.max(gapMs(url.line), interRequestDelay) + turnaroundMs;
    for (const block of blocks) busy += (wireMs({ unit, ...block }, url) + pause) / everyMs;
  }
  const forecast = { readingsPerSecond: readings, requestsPerSecond: requests };
  return url.transport === "serial" ? { ...forecast, busLoad: busy } : forecast;
}
