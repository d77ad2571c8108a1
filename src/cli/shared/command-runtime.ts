// The `Runtime` of commands that end: the parts work as in the agent, and what they would log the command says itself.

import { metricsRegistry } from "../../agent/process/metrics.ts";
import { systemRuntime } from "../../agent/runtime.ts";
import type { Logger, Runtime } from "../../core/runtime.ts";

export function commandRuntime(): Runtime {
  return systemRuntime(silent, metricsRegistry());
}

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, child: () => silent };
