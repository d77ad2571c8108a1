// The `Runtime` of commands: nothing is logged, since the command prints its own messages.

import { metricsRegistry } from "../../agent/process/metrics.ts";
import type { Logger, Runtime } from "../../core/runtime.ts";
import { systemRuntime } from "../../lib/time/clock.ts";

export function commandRuntime(): Runtime {
  return systemRuntime(silent, metricsRegistry());
}

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
