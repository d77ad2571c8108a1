// The plant of the soak test: a broker, a Modbus device and an OPC UA server behind a network that can be cut. Each
// records what it sent. All values are distinct.
import type { MqttClient } from "mqtt";
import type { InputId } from "../../src/core/point.ts";
import { eventually } from "./eventually.ts";
import type { Held } from "./gap-reconciliation.ts";
import { type ModbusDevice, modbusDevice } from "./modbus-device.ts";
import { type Mosquitto, openMosquitto } from "./mosquitto.ts";
import { opcuaLine } from "./opcua-line.ts";
import { type TcpProxy, tcpProxy } from "./tcp-proxy.ts";
import type { TemporaryFolder } from "./temporary-folder.ts";

export interface SoakPlant extends AsyncDisposable {
  readonly broker: Mosquitto;
  readonly brokerNetwork: TcpProxy;
  readonly modbus: ModbusDevice;
  readonly opcuaNetwork: TcpProxy;
  /** Messages that the broker acknowledged with QoS 1: each must be in the service. */
  readonly acknowledged: readonly Held[];
  /**
   * Values of Modbus replies, and values that the OPC UA server sampled or recorded: each in the service or the gap
   * record.
   */
  readonly polled: readonly Held[];
  /** Resolves at once when the Modbus device has sent the next reply with a value. */
  reply(): Promise<void>;
  /** Starts to change values. The agent must have its session and its subscription. */
  begin(): void;
  /** While `work` runs, the broker acknowledges no publication, and all acknowledged ones are in its file. */
  withBrokerSaved(work: () => Promise<void>): Promise<void>;
  publishRaw(topic: string, payload: string | Buffer): Promise<void>;
  /**
   * Ends the OPC UA server and restarts it on the same port, as after a power cut in which the network failed first.
   */
  restartOpcua(whileAway: () => Promise<void>): Promise<void>;
  /** Stops changing values, and publishes the marker that follows all others. */
  end(): Promise<void>;
  /** The `sources` of a configuration; `more` adds a tag to each. */
  readonly sources: (more: boolean) => string;
}

export const soakTopics = 20;
export const marker = -1;
const units = [1, 2] as const;
const everyMs = 250;
const publishMs = 50;
const publishedAtOnce = 5;

export async function soakPlant(folder: TemporaryFolder): Promise<SoakPlant> {
  await using opening = new AsyncDisposableStack();
  const broker = opening.use(await openMosquitto());
  const brokerNetwork = opening.use(await tcpProxy(broker.port));
  const modbus = opening.use(await modbusDevice());
  const line = opening.use(await opcuaLine(folder.file("server")));
  const acknowledged: Held[] = [];
  const replied: Held[] = [];

  let replying = Promise.withResolvers<void>();
  // Each reply holds the next value.
  const counters = new Map<number, number>(units.map((unit) => [unit, 0]));
  const next = (unit: number) => {
    const value = (counters.get(unit) ?? 0) + 1;
    counters.set(unit, value);
    modbus.unit(unit).set("hr", 0, [Math.floor(value / 65_536), value % 65_536]);
  };
  for (const unit of units) next(unit);
  modbus.answered = () => {
    const unit = modbus.requests.at(-1)?.unit ?? 0;
    if (!counters.has(unit) || modbus.unit(unit).exception !== undefined) return;
    const value = counters.get(unit) ?? 0;
    replied.push({ input: `bus.u${unit}` as InputId, value, at: Date.now() * 1_000, stamped: false });
    next(unit);
    replying.resolve();
    replying = Promise.withResolvers();
  };

  const client: MqttClient = await broker.publisher();
  const publish = (topic: string, payload: string | Buffer) => client.publishAsync(topic, payload, { qos: 1 });
  const pending = new Set<Promise<void>>();
  let published = 0;
  let paused = true;
  const pour = setInterval(() => {
    // Limits the unacknowledged publications while the broker is unavailable.
    for (let i = 0; i < publishedAtOnce && !paused && pending.size < 1_000; i++) {
      const [topic, number, at] = [published % soakTopics, Math.floor(published / soakTopics), Date.now()];
      published++;
      const sent = publish(`hall/t${topic}`, JSON.stringify({ t: at, v: number })).then(() => {
        acknowledged.push({ input: `hall.t${topic}` as InputId, value: number, at: at * 1_000, stamped: true });
      });
      pending.add(sent);
      void sent.finally(() => pending.delete(sent)).catch(() => {});
    }
  }, publishMs);
  opening.defer(() => clearInterval(pour));

  const owned = opening.move();
  return {
    broker,
    brokerNetwork,
    modbus,
    opcuaNetwork: line.network,
    acknowledged,
    get polled() {
      return [...replied, ...line.held];
    },
    reply: () => replying.promise,
    begin() {
      paused = false;
      line.begin();
    },
    async withBrokerSaved(work) {
      paused = true;
      try {
        await Promise.all(pending);
        // The broker writes once a second. The second file from now on was started after the last acknowledgement.
        const saves = () => broker.log.split("Saving in-memory database").length;
        const before = saves();
        await eventually(() => saves() >= before + 2, 60_000);
        await work();
      } finally {
        paused = false;
      }
    },
    async publishRaw(topic, payload) {
      await publish(topic, payload);
    },
    restartOpcua: (whileAway) => line.restart(whileAway),
    async end() {
      paused = true;
      await line.end();
      await Promise.all(pending);
      modbus.answered = () => {};
      for (let i = 0; i < soakTopics; i++) await publish(`hall/t${i}`, JSON.stringify({ t: Date.now(), v: marker }));
    },
    sources: (more) => `
  hall:
    type: mqtt
    url: mqtt://127.0.0.1:${brokerNetwork.port}
    username: ${broker.username}
    password: ${broker.password}
    tags:
      - { input: "hall.{tag}", topic: "hall/{tag}", value: $.v, time: { at: $.t, format: unixMs } }
      - { input: hostile, topic: hostile/value, value: $.v }
${more ? "      - { input: more.hall, topic: more/value }\n" : ""}
  bus:
    type: modbus
    url: ${modbus.url}
    every: ${everyMs}ms
    timeout: 1s
    retries: 0
    devices:
${units
  .map(
    (unit) => `      - unit: ${unit}
        tags:
          - { input: bus.u${unit}, at: "hr:0 u32" }
${more ? `          - { input: more.u${unit}, at: "hr:10 u16" }\n` : ""}`,
  )
  .join("")}${line.source({ timeout: "5s", queue: 1_000, more })}`,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
