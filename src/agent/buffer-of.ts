// The buffer that a configuration asks for.
import { join } from "node:path";
import type { OpenBufferOptions } from "../buffer/registry.ts";
import type { Config } from "../config/config.ts";

export function bufferOf({ agent, service, buffer }: Config): OpenBufferOptions {
  const directory = join(agent.dataDir, "buffer");
  return { directory, integration: service.integration, config: buffer, requestBytes: service.limits.maxRequest };
}
