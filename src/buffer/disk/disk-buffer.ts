// The buffer on disk, as the agent sees it.
import type { PointBuffer } from "../../core/buffer.ts";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { BufferOptions } from "./options.ts";

export interface DiskBufferOptions {
  readonly directory: string;
  readonly integration: string;
  readonly config: BufferOptions;
}

export function openDiskBuffer(
  options: DiskBufferOptions,
  _runtime: Runtime,
  _signal: AbortSignal,
): Promise<PointBuffer> {
  return Promise.reject(
    new AgentError("BUFFER_UNAVAILABLE", `the buffer in ${options.directory} cannot be opened yet`),
  );
}
