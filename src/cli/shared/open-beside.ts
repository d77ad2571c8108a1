// Opens a source of a configuration for a look, beside an agent that may be running on the same one.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Config, ConfiguredSource } from "../../config/config.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Source } from "../../core/source.ts";

/** Rejects as `Driver.open` does. */
export async function openBeside(
  { name, driver, options, tags }: ConfiguredSource,
  { agent, file: configFile }: Config,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Source> {
  await using opened = new AsyncDisposableStack();
  const temporary = await mkdtemp(join(tmpdir(), "tagferry-look-"));
  opened.defer(() => rm(temporary, { recursive: true, force: true }));
  const dataDir = resolve(agent.dataDir);
  const stateDir = resolve(dataDir, "sources", name);
  const own = { name, agent: agent.name, stateDir, sharedDir: dataDir, configFile, options, tags };
  const config = (await driver.beside?.(own, temporary)) ?? { ...own, stateDir: temporary };
  const source = opened.use(await driver.open(config, runtime, signal));
  const owned = opened.move();
  return {
    deliveries: (stop) => source.deliveries(stop),
    addresses: source.addresses,
    ...(source.check && { check: (stop) => source.check?.(stop) ?? Promise.resolve([]) }),
    details: () => source.details?.() ?? {},
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
