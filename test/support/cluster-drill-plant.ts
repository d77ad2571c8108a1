// The plant of the cluster drill: each agent has its own broker and Modbus device, which record what they sent.
import { mkdirSync } from "node:fs";
import type { InputId } from "../../src/core/point.ts";
import type { AgentProcess } from "./agent-process.ts";
import type { Held } from "./gap-reconciliation.ts";
import { modbusDevice } from "./modbus-device.ts";
import { openMosquitto } from "./mosquitto.ts";
import { loadConfiguration, publishLoad } from "./mqtt-load.ts";

export interface ClusterDrillPlant extends AsyncDisposable {
  /** The agent's configuration without the section `cluster`. */
  readonly configuration: string;
  /** Values of Modbus replies: each must be in the service or in the gap record. All values differ. */
  readonly polled: readonly Held[];
  /** Starts publishing. The agent must have its session. */
  begin(): Promise<void>;
  /** Resolves with the messages that the broker has acknowledged: each must be in the service. */
  end(): Promise<readonly Held[]>;
  /** By `input time`: the last value published for a time that several messages have. */
  readonly last: ReadonlyMap<string, number>;
  /** After `end`: whether the agent has received the last message of each topic. */
  isRead(agent: Pick<AgentProcess, "status">): Promise<boolean>;
}

const perSecond = 60;
const sameTimeTopics = 4;
const sameTimeMs = 50;
const slotMs = 1_000;
/** One in five messages has a time in one of the last two minutes. */
const oldShare = 0.2;
const oldSlots = 120;
const lastValue = -1;
const everyMs = 250;

/** `name` is `agent.name` and the prefix of its inputs. `folder` is created and holds its data. */
export async function clusterDrillPlant(
  name: string,
  folder: string,
  serviceUrl: string,
  random: () => number,
): Promise<ClusterDrillPlant> {
  mkdirSync(folder);
  await using opening = new AsyncDisposableStack();
  const broker = opening.use(await openMosquitto());
  const modbus = opening.use(await modbusDevice());
  const client = await broker.publisher();
  const polled: Held[] = [];
  const last = new Map<string, number>();
  const acknowledgements = new Set<Promise<unknown>>();
  const stop = new AbortController();
  opening.defer(() => stop.abort());

  let counter = 0;
  const next = () => modbus.unit(1).set("hr", 0, [Math.floor(++counter / 65_536), counter % 65_536]);
  next();
  modbus.answered = () => {
    polled.push({ input: `${name}.bus` as InputId, value: counter, at: Date.now() * 1_000, stamped: false });
    next();
  };

  async function publish(topic: number, time: number, value: number): Promise<void> {
    last.set(`${name}.same.t${topic} ${new Date(time).toISOString()}`, value);
    const sent = client.publishAsync(`same/t${topic}`, JSON.stringify({ t: time, v: value }), { qos: 1 });
    acknowledgements.add(sent);
    await sent.finally(() => acknowledgements.delete(sent));
  }

  function publishSameTimes(): void {
    let value = 0;
    const timer = setInterval(() => {
      const age = random() < oldShare ? Math.floor(random() * oldSlots) : 0;
      const time = (Math.floor(Date.now() / slotMs) - age) * slotMs;
      void publish(value % sameTimeTopics, time, value++).catch(() => {});
    }, sameTimeMs);
    stop.signal.addEventListener("abort", () => clearInterval(timer), { once: true });
  }

  let load: Awaited<ReturnType<typeof publishLoad>> | undefined;
  const owned = opening.move();
  return {
    configuration: `${loadConfiguration(folder, serviceUrl, broker)
      .replace("name: drill", `name: ${name}, ownSignals: off`)
      .replace(
        "hall.{tag}",
        `${name}.{tag}`,
      )}      - { input: "${name}.same.{tag}", topic: "same/{tag}", value: $.v, time: { at: $.t, format: unixMs } }
  bus:
    type: modbus
    url: ${modbus.url}
    every: ${everyMs}ms
    timeout: 1s
    retries: 0
    tags: [{ input: ${name}.bus, at: "hr:0 u32" }]
`,
    polled,
    last,
    async begin() {
      load = owned.use(await publishLoad(broker, perSecond));
      publishSameTimes();
    },
    async end() {
      stop.abort();
      const published = (await load?.end()) ?? [];
      await Promise.all(acknowledgements);
      await load?.publishLast();
      const slot = Math.ceil(Date.now() / slotMs) * slotMs;
      for (let topic = 0; topic < sameTimeTopics; topic++) await publish(topic, slot, lastValue);
      return published.map(([input, value]) => ({
        input: input.replace("hall", name) as InputId,
        value,
        at: 0,
        stamped: true,
      }));
    },
    async isRead(agent) {
      const { tags, sources } = await agent.status();
      const ofBroker = tags.filter(({ input }) => input?.startsWith(`${name}.`) && input !== `${name}.bus`);
      const unread = ofBroker.filter(({ value }) => value !== lastValue);
      if (ofBroker.length > sameTimeTopics && unread.length === 0) return true;
      const [hall] = sources.filter((source) => source.name === "hall");
      throw new Error(`${name} has not read the last message of ${JSON.stringify(unread)}: ${JSON.stringify(hall)}`);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
