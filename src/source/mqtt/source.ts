// One connection to a broker as a `Source`.

import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { DriverConfig, Source } from "../../core/source.ts";
import type { mqttOptions } from "./options.ts";
import type { mqttTag } from "./tag.ts";

/** Connects; see `Driver.open`. */
export function openMqttSource(
  config: DriverConfig<typeof mqttOptions, typeof mqttTag>,
  _runtime: Runtime,
  _signal: AbortSignal,
): Promise<Source> {
  return Promise.reject(new AgentError("SOURCE_UNREACHABLE", `${config.options.url}: connections are not built yet`));
}
