// Kills the agent at random moments while messages pour in, and tells what the service has in the end.
import { connectAsync, type MqttClient } from "mqtt";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { seeded, testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

export interface Broker {
  readonly url: string;
  readonly username: string;
  readonly password: string;
}

export interface KillDrill {
  readonly broker: Broker;
  readonly kills: number;
  readonly messagesPerSecond: number;
  /** Program to run instead of the agent, for showing that the drill can fail. */
  readonly entry?: string;
  readonly seed: number;
}

export interface KillDrillResult {
  readonly published: number;
  /** Messages that the broker took and the service does not have. */
  readonly missing: readonly string[];
}

const topics = 20;
/** The last message of each topic: when it has arrived, everything before it has, or never will. */
const lastValue = -1;
const signal = new AbortController().signal;

/** Resolves when the agent was killed `kills` times under load, started a last time and has delivered everything. */
export async function killDrill({
  broker,
  kills,
  messagesPerSecond,
  entry,
  seed,
}: KillDrill): Promise<KillDrillResult> {
  using folder = temporaryFolder();
  const runtime = testRuntime({ seed });
  const random = seeded(seed);
  await using service = await testService({ throttle: "queue" });
  const options = {
    folder: folder.path,
    configuration: configuration(folder.path, service.url, broker),
    ...(entry && { entry }),
  };
  const from = runtime.clock.now();

  {
    // The agent subscribes once before the first message: from then on its session collects whatever it misses.
    await using first = await startAgent(options);
    await eventually(async () => (await first.status()).sources[0]?.state === "online");
  }
  const publisher = await connectAsync(broker.url, { username: broker.username, password: broker.password });
  const load = new Load(publisher, messagesPerSecond);
  for (let kill = 0; kill < kills; kill++) {
    await using agent = await startAgent(options);
    await runtime.clock.sleep(100 + random() * 1_200, signal);
    await agent.kill();
  }
  const published = await load.end();

  await using last = await startAgent(options);
  await load.publishLast();
  await publisher.endAsync();
  await eventually(() => hasDelivered(last), 90_000);
  await last.stop();

  const before = epochMicros(runtime.clock.now() + 60e6);
  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const stored = await readBack(reader, { from, before }, runtime, signal);
  const missing = published.filter(([input, value]) => !stored.get(input)?.has(value));
  return { published: published.length, missing: missing.map(([input, value]) => `${input}=${value}`) };
}

async function hasDelivered(agent: AgentProcess): Promise<boolean> {
  const { tags, buffer } = await agent.status();
  return tags.length === topics && tags.every(({ value }) => value === lastValue) && buffer.unsettledPoints === 0;
}

function configuration(
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

/** Publishes QoS 1 messages at an even pace; every value of a topic is another one. */
class Load {
  readonly #client: MqttClient;
  readonly #published: (readonly [InputId, number])[] = [];
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(client: MqttClient, perSecond: number) {
    this.#client = client;
    this.#running = this.#run(perSecond);
  }

  /** Every message that the broker has acknowledged. */
  async end(): Promise<readonly (readonly [InputId, number])[]> {
    this.#stop.abort();
    await this.#running;
    return this.#published;
  }

  async publishLast(): Promise<void> {
    for (let i = 0; i < topics; i++) await this.#publish(i, lastValue);
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
          this.#publish(topic, value).then(() => void this.#published.push([`hall.t${topic}` as InputId, value])),
        );
      }
      await Promise.all(batch);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  async #publish(topic: number, value: number): Promise<void> {
    await this.#client.publishAsync(`hall/t${topic}`, JSON.stringify({ t: Date.now(), v: value }), { qos: 1 });
  }
}
