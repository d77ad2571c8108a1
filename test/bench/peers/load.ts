// What the programs read in a run: a broker with a publisher, devices, a server, each in its own process that is
// started for the run.
import { join } from "node:path";
import { type Mosquitto, openMosquitto } from "../../support/mosquitto.ts";
import { type BenchChild, benchChild } from "./child.ts";
import type { Plant } from "./setting.ts";

export interface Load {
  readonly name: string;
  readonly title: string;
  /** The procedure of its runs (`run.ts`). */
  readonly procedure: "steady" | "idle" | "outage" | "kill";
  /** `shared` is a folder that is kept over all runs. */
  open(shared: string): Promise<RunningLoad>;
}

export interface RunningLoad extends AsyncDisposable {
  readonly plant: Plant;
  /**
   * Whether a program has connected this many times and has its subscriptions, new or resumed. Undefined without a
   * broker.
   */
  readonly isSubscribed: ((times: number) => boolean) | undefined;
  /** Starts the load of a publisher. Devices and servers have values from their start. */
  begin(): Promise<void>;
  /** Points so far, as the load counts them. */
  sent(): Promise<number>;
  /** Ends the load. Resolves with the number of points once all of them have been sent. */
  stop(): Promise<number>;
}

const here = import.meta.dirname;
const topics = 1_000;
const ordinaryBacklog = 50_000;

/** Accepts `mqtt-RATE` for any rate. Throws for an unknown name. */
export function loadOf(name: string): Load {
  const rate = Number(/^mqtt-(\d+)$/.exec(name)?.[1]);
  if (rate > 0)
    return {
      name,
      title: `MQTT QoS 1, ${rate} messages/s on ${topics} topics`,
      procedure: "steady",
      open: () => mqtt(rate),
    };
  const load = fixedLoads.find((each) => each.name === name);
  if (!load) throw new Error(`${name} is no load: ${["mqtt-RATE", ...fixedLoads.map((each) => each.name)].join(", ")}`);
  return load;
}

export const standardLoads = ["mqtt-1000", "mqtt-10000", "modbus", "opcua", "idle-mqtt", "idle-all", "outage", "kill"];

const fixedLoads: readonly Load[] = [
  {
    name: "modbus",
    title: "Modbus TCP, 20 devices × 500 registers each second",
    procedure: "steady",
    open: () => modbus(20, 500, 1),
  },
  {
    name: "opcua",
    title: "OPC UA, 2,000 items that change each second",
    procedure: "steady",
    open: (shared) => opcua(shared, 2_000, 1),
  },
  { name: "idle-mqtt", title: "idle, MQTT alone", procedure: "idle", open: () => mqtt(10) },
  {
    name: "idle-all",
    title: "idle, MQTT, one register and one item every 10 s",
    procedure: "idle",
    open: async (shared) => {
      const parts = await Promise.all([mqtt(10), modbus(1, 1, 10), opcua(shared, 1, 0)]);
      const [broker, devices, server] = parts;
      return {
        ...broker,
        plant: { ...broker.plant, ...devices.plant, ...server.plant },
        async [Symbol.asyncDispose]() {
          for (const part of parts) await part[Symbol.asyncDispose]();
        },
      };
    },
  },
  {
    name: "outage",
    title: "the sink down and back, MQTT QoS 1 at 2,000 messages/s",
    procedure: "outage",
    open: () => mqtt(2_000, 200_000),
  },
  { name: "kill", title: "10 × kill -9, MQTT QoS 1 at 500 messages/s", procedure: "kill", open: () => mqtt(500) },
];

async function mqtt(rate: number, backlog = ordinaryBacklog): Promise<RunningLoad> {
  const broker: Mosquitto = await openMosquitto({
    // Telegraf leaves messages unacknowledged until they are written. With mosquitto's default of 20 it could never
    // keep up.
    config: [
      "persistence false",
      "max_inflight_messages 0",
      "log_type information",
      "log_type notice",
      "log_type subscribe",
    ],
  });
  const { port, username, password } = broker;
  let publisher: BenchChild | undefined;
  const ask = async (question: string) => Number(publisher ? await publisher.ask(question) : 0);
  return {
    plant: { mqtt: { port, username, password }, backlog },
    isSubscribed: (times) =>
      broker.log.includes(" 1 plant/+/+") && [...broker.log.matchAll(/ as (?!load-)\S+ \(/g)].length >= times,
    async begin() {
      const args = [port, username, password, rate, topics, Number.MAX_SAFE_INTEGER].map(String);
      publisher = await benchChild(join(here, "../agent/mqtt-load.ts"), args);
    },
    sent: () => ask("sent"),
    stop: () => ask("stop"),
    async [Symbol.asyncDispose]() {
      await publisher?.[Symbol.asyncDispose]();
      await broker[Symbol.asyncDispose]();
    },
  };
}

async function modbus(devices: number, registers: number, everySeconds: number): Promise<RunningLoad> {
  const child = await benchChild(join(here, "../modbus/devices.ts"), [String(devices), "moving"]);
  const urls = child.ready as readonly string[]; // sent by the script
  return { plant: { modbus: { urls, registers, everySeconds }, backlog: ordinaryBacklog }, ...counted(child) };
}

/** With an interval of 0 the items never change. */
async function opcua(shared: string, items: number, everySeconds: number): Promise<RunningLoad> {
  const args = [join(shared, "opcua-server"), String(items), String(everySeconds * 1_000)];
  const child = await benchChild(join(here, "../opcua/server.ts"), args);
  const url = `opc.tcp://127.0.0.1:${Number(child.ready)}`;
  return {
    plant: { opcua: { url, items, everySeconds: everySeconds || 10 }, backlog: ordinaryBacklog },
    ...counted(child),
  };
}

function counted(child: BenchChild): Omit<RunningLoad, "plant"> {
  const ask = async (question: string) => Number(await child.ask(question));
  return {
    isSubscribed: undefined,
    begin: async () => {},
    sent: () => ask("sent"),
    stop: () => ask("stop"),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
