// A steady load of QoS 1 messages with distinct values, and the configuration of an agent that reads it.
import { connectAsync, type MqttClient } from "mqtt";
import type { InputId } from "../../src/core/point.ts";
import type { AgentProcess } from "./agent-process.ts";
import { eventually } from "./eventually.ts";
import { integration, password } from "./service.ts";

export interface Broker {
  readonly url: string;
  readonly username: string;
  readonly password: string;
}

/** Input, value, and the time at which the broker acknowledged it (`performance.now`). */
export type Published = readonly (readonly [InputId, number, number])[];

export interface Load extends AsyncDisposable {
  /** Stops publishing. Resolves with every message that the broker has acknowledged. */
  end(): Promise<Published>;
  /** Publishes the message of each topic that `hasDelivered` waits for. */
  publishLast(): Promise<void>;
}

const topics = 20;
const lastValue = -1;

/** Whether the last message of each topic has been received and nothing waits for delivery. */
export async function hasDelivered(agent: AgentProcess): Promise<boolean> {
  const { tags, buffer } = await agent.status();
  return tags.length === topics && tags.every(({ value }) => value === lastValue) && buffer.unsettledPoints === 0;
}

/**
 * Publishes the last message of each topic, and resolves once all have been delivered. A broker may send what it kept in
 * a session after newer messages, so they are published again every 10 s.
 */
export async function deliverLast(load: Load, agent: AgentProcess, withinMs: number): Promise<void> {
  let againAt = 0;
  await eventually(async () => {
    if (performance.now() >= againAt) {
      await load.publishLast();
      againAt = performance.now() + 10_000;
    }
    return await hasDelivered(agent);
  }, withinMs);
}

/** Configuration of an agent that reads the load of `broker`, with its data in `folder`. */
export function loadConfiguration(
  folder: string,
  url: string,
  { url: brokerUrl, username, password: brokerPassword }: Broker,
): string {
  return `version: 1
agent: { name: drill, dataDir: ${JSON.stringify(`${folder}/data`)} }
service: { url: "${url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  hall:
    type: mqtt
    url: ${brokerUrl}
    username: ${username}
    password: ${brokerPassword}
    tags:
      - { input: "hall.{tag}", topic: "hall/{tag}", value: $.v, time: { at: $.t, format: unixMs } }
`;
}

/** Starts publishing at once. */
export async function publishLoad(broker: Broker, perSecond: number): Promise<Load> {
  const client = await connectAsync(broker.url, { username: broker.username, password: broker.password });
  return new Publisher(client, perSecond);
}

/** Publishes QoS 1 messages at an even pace. The values of a topic are distinct. */
class Publisher implements Load {
  readonly #client: MqttClient;
  readonly #published: (readonly [InputId, number, number])[] = [];
  readonly #stop = new AbortController();
  /** The time of the last value of each topic, in milliseconds since the epoch. */
  readonly #times: number[] = [];
  readonly #running: Promise<void>;

  constructor(client: MqttClient, perSecond: number) {
    this.#client = client;
    this.#running = this.#run(perSecond);
  }

  async end(): Promise<Published> {
    this.#stop.abort();
    await this.#running;
    return this.#published;
  }

  async publishLast(): Promise<void> {
    for (let i = 0; i < topics; i++) await this.#publish(i, lastValue);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#client.endAsync(true);
  }

  async #run(perSecond: number): Promise<void> {
    const started = performance.now();
    for (let n = 0; !this.#stop.signal.aborted; ) {
      const due = Math.floor(((performance.now() - started) / 1_000) * perSecond);
      const batch: Promise<void>[] = [];
      for (; n < due; n++) {
        const topic = n % topics;
        const value = Math.floor(n / topics);
        batch.push(
          this.#publish(topic, value).then(
            () => void this.#published.push([`hall.t${topic}` as InputId, value, performance.now()]),
          ),
        );
      }
      await Promise.all(batch);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async #publish(topic: number, value: number): Promise<void> {
    // Each value gets its own time, even when the pace catches up, because of several with one time only the last is
    // stored.
    const time = Math.max(Date.now(), (this.#times[topic] ?? 0) + 1);
    this.#times[topic] = time;
    await this.#client.publishAsync(`hall/t${topic}`, JSON.stringify({ t: time, v: value }), { qos: 1 });
  }
}
