// An MQTT source as the agent opens it, from the YAML-like options of a test.

import type { DriverConfig } from "../../src/core/driver.ts";
import type { Runtime } from "../../src/core/runtime.ts";
import type { Delivery, Reading, Source } from "../../src/core/source.ts";
import { mqttDriver } from "../../src/source/mqtt/driver.ts";

export type MqttConfig = DriverConfig<typeof mqttDriver.schema, typeof mqttDriver.tag>;

export interface MqttSourceText {
  readonly options: Readonly<Record<string, unknown>>;
  readonly tags: readonly Readonly<Record<string, unknown>>[];
  /**
   * Default: a folder that cannot be created, not even by root, so that nothing is remembered. Ports are reused by
   * brokers of other tests, and the protocol version of a former broker must not be known.
   */
  readonly stateDir?: string;
}

/** The configuration as the agent passes it to the driver: parsed, with defaults. */
export function mqttConfig({ options, tags, stateDir = "/dev/null/tagferry" }: MqttSourceText): MqttConfig {
  return {
    name: "hall",
    agent: "north",
    stateDir,
    options: mqttDriver.schema.parse(options),
    tags: tags.map((tag) => ({ ...mqttDriver.tag.parse(tag), every: 1_000 })),
  };
}

export function openMqttSource(text: MqttSourceText, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  return mqttDriver.open(mqttConfig(text), runtime, signal);
}

/** Pulls deliveries one at a time, as the pipeline does. */
export interface Puller extends AsyncDisposable {
  /** Resolves with the next delivery, which is not acknowledged. */
  next(): Promise<Delivery>;
  /** Resolves with the next `count` readings and acknowledges their deliveries. */
  readings(count: number): Promise<readonly Reading[]>;
}

/** Abort `signal` before disposing if a pull is under way. */
export function pull(source: Source, signal: AbortSignal): Puller {
  const iterator = source.deliveries(signal)[Symbol.asyncIterator]();
  const next = async () => {
    const result = await iterator.next();
    if (result.done) throw new Error("no more deliveries");
    return result.value;
  };
  return {
    next,
    async readings(count) {
      const all: Reading[] = [];
      while (all.length < count) {
        const delivery = await next();
        all.push(...delivery.readings);
        delivery.ack();
      }
      return all;
    },
    async [Symbol.asyncDispose]() {
      await iterator.return?.();
    },
  };
}

/** `topic=value` of each reading, for comparison. */
export function brief(readings: readonly Reading[]): string[] {
  return readings.map(({ address, value, reason }) => `${address}=${String(value ?? reason)}`);
}
