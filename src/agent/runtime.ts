import type { Clock, Logger, Metrics, Runtime } from "../core/runtime.ts";
import { systemClock } from "../lib/time/clock.ts";

export function systemRuntime(log: Logger, metrics: Metrics, clock: Clock = systemClock()): Runtime {
  return { clock, random: Math.random, log, metrics };
}
