// A source that several agents of a cluster can read, and agents that do nothing but append its readings.
import type { ConfiguredSource } from "../../src/config/format/config.ts";
import { type EpochMicros, epochMicros } from "../../src/core/point.ts";
import { load } from "./config.ts";
import { integration } from "./service.ts";

/** A source `line` of the agent gw1, with this `run`. */
export async function lineWith(run: string): Promise<ConfiguredSource> {
  const { sources } = await load(`version: 1
agent: { name: gw1 }
service: { url: "https://service.example", integration: ${integration}, auth: { basic: { password: x } } }
cluster: { servers: [nats://a] }
sources: { line: { type: simulator, run: ${run}, tags: [{ input: a, wave: sine }] } }
`);
  return sources[0]!;
}

/** The sources that an agent reads. Each appends its readings when it is started. */
export class Reading {
  running: { configured: ConfiguredSource; accountedUpTo: EpochMicros }[] = [];
  readonly #start: () => Promise<void>;

  constructor(start: () => Promise<void>) {
    this.#start = start;
  }

  async change(sources: readonly ConfiguredSource[]) {
    const names = (some: readonly ConfiguredSource[]) => some.map(({ name }) => name);
    const before = names(this.running.map(({ configured }) => configured));
    const started = names(sources).filter((name) => !before.includes(name));
    if (started.length > 0) await this.#start();
    this.running = sources.map((configured) => ({ configured, accountedUpTo: epochMicros(Date.now() * 1_000) }));
    const stopped = before.filter((name) => !names(sources).includes(name));
    return { started, restarted: [], stopped, unchanged: [] };
  }
}
