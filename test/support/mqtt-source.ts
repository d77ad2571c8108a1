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
   * Default: a folder that nobody can create, not even root, so that nothing is remembered. A port is used again by the
   * broker of another test, and what that one spoke must not be known here.
   */
  readonly stateDir?: string;
}

/** The configuration as the agent hands it to the driver: parsed, with defaults. */
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
  /** The next delivery; not acknowledged. */
  next(): Promise<Delivery>;
  /** The next `count` readings; their deliveries are acknowledged. */
  readings(count: number): Promise<readonly Reading[]>;
}

/** `signal` must be aborted before this is disposed, if a pull is under way. */
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

/** `topic=value` of each reading, for comparing. */
export function brief(readings: readonly Reading[]): string[] {
  return readings.map(({ address, value, reason }) => `${address}=${String(value ?? reason)}`);
}
