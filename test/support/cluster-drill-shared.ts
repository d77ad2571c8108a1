// The sources of the cluster drill that several agents may read: a broker, an OPC UA server and a Modbus device. They
// record what they gave out.
import type { Gap } from "../../src/agent/gaps/gap.ts";
import type { Status } from "../../src/agent/status/status.ts";
import type { InputId } from "../../src/core/point.ts";
import type { Stored } from "../../src/demo/comparison.ts";
import { eventually } from "./eventually.ts";
import { type Held, reconcile } from "./gap-reconciliation.ts";
import { modbusDevice } from "./modbus-device.ts";
import { openMosquitto } from "./mosquitto.ts";
import { publishLoad } from "./mqtt-load.ts";
import { lineNamespace, opcuaServer } from "./opcua-server.ts";
import { pollTap } from "./poll-tap.ts";
import { patienceMs } from "./restartable-agent.ts";

export interface SharedSources extends AsyncDisposable {
  /**
   * Lines of the section `sources`. `isClockRight`: with the Modbus device, whose values have the time of the agent's
   * clock, and with the OPC UA server: a gap that the server does not fill has the time of the former reader's clock.
   */
  configuration(isClockRight: boolean): string;
  /** Starts publishing and counting. */
  begin(): Promise<void>;
  /** Resolves when nothing more is published. */
  end(): Promise<void>;
  /** Whether each source is read by one of the agents. */
  areRead(agents: readonly Status[]): boolean;
  /** What is wrong in the end. `gaps`: the records of all agents. */
  reconcile(stored: Stored, gaps: readonly Gap[]): SharedReconciliation;
}

export interface SharedReconciliation {
  /** Values that the broker acknowledged, the OPC UA server sampled, and the device sent. */
  readonly sharedValues: Readonly<Record<Name, number>>;
  /** Values that are neither in the service nor in the gap record of their source. */
  readonly sharedUnexplained: readonly string[];
  /** Values that are only in the gap record. */
  readonly sharedExplained: Readonly<Record<Name, number>>;
  /** Rows of the gap record with the cause `takeover`. */
  readonly sharedTakeovers: Readonly<Record<Name, number>>;
  /** Polls of a former reader more than `lateMs` after the first poll of the next one. */
  readonly latePolls: number;
}

const names = ["anyHall", "anyLine", "anyBus"] as const;
type Name = (typeof names)[number];
const perSecond = 20;
const countEveryMs = 250;
const pollEveryMs = 250;
const pollTimeoutMs = 1_000;
/** A poll that was sent before the lease ended may last its timeout. The rest is for a busy machine. */
const lateMs = pollTimeoutMs + 2_000;

/** `folder` is for the keys of the OPC UA server. */
export async function clusterDrillShared(folder: string): Promise<SharedSources> {
  await using opening = new AsyncDisposableStack();
  const broker = opening.use(await openMosquitto());
  const line = opening.use(await opcuaServer({ folder }));
  const device = opening.use(await modbusDevice());
  const tap = opening.use(await pollTap(device.port));
  const held: Record<Name, Held[]> = { anyHall: [], anyLine: [], anyBus: [] };
  const stop = new AbortController();
  opening.defer(() => stop.abort());

  let polled = 0;
  const nextPoll = () => device.unit(1).set("hr", 0, [Math.floor(++polled / 65_536), polled % 65_536]);
  nextPoll();
  device.answered = () => {
    held.anyBus.push({ input: "any.bus" as InputId, value: polled, at: Date.now() * 1_000, stamped: false });
    nextPoll();
  };

  let load: Awaited<ReturnType<typeof publishLoad>> | undefined;
  let counting: Promise<void> | undefined;
  /** Sets each value as soon as the server has sampled the one before. Without a subscription it samples nothing. */
  async function count(): Promise<void> {
    for (let value = 1; !stop.signal.aborted; value++) {
      const at = new Date();
      line.set("Count", value, at);
      await new Promise((resolve) => setTimeout(resolve, countEveryMs));
      await eventually(() => stop.signal.aborted || line.counted.has(value), patienceMs);
      if (!line.counted.has(value)) return;
      held.anyLine.push({ input: "any.count" as InputId, value, at: at.getTime() * 1_000, stamped: true });
    }
  }

  const owned = opening.move();
  return {
    configuration: (isClockRight) => `  anyHall:
    type: mqtt
    run: anywhere
    url: ${broker.url}
    username: ${broker.username}
    password: ${broker.password}
    tags:
      - { input: "any.hall.{tag}", topic: "hall/{tag}", value: $.v, time: { at: $.t, format: unixMs } }
${
  isClockRight
    ? `  anyLine:
    type: opcua
    run: anywhere
    url: ${line.url}
    security: { mode: none }
    subscription: { queue: 500 }
    every: 100ms
    tags: [{ input: any.count, node: "nsu=${lineNamespace};s=Count" }]
  anyBus:
    type: modbus
    run: anywhere
    url: tcp://127.0.0.1:${tap.port}
    every: ${pollEveryMs}ms
    timeout: ${pollTimeoutMs}ms
    retries: 0
    tags: [{ input: any.bus, at: "hr:0 u32" }]
`
    : ""
}`,
    async begin() {
      load = owned.use(await publishLoad(broker, perSecond));
      counting = count();
      counting.catch(() => {}); // `end` rejects with it
    },
    async end() {
      stop.abort();
      device.answered = () => {};
      await counting;
      const published = (await load?.end()) ?? [];
      for (const [input, value] of published)
        held.anyHall.push({ input: input.replace("hall", "any.hall") as InputId, value, at: 0, stamped: true });
    },
    areRead: (agents) =>
      names.every((name) =>
        agents.some(({ sources }) => sources.some((source) => source.name === name && source.state === "online")),
      ),
    reconcile(stored, gaps) {
      const reconciled = names.map((name) => {
        const own = gaps.filter(({ source }) => source === name);
        return { name, ...reconcile(held[name], stored, own), takeovers: own.filter(isTakeover).length };
      });
      const perName = (of: (one: (typeof reconciled)[number]) => number) =>
        Object.fromEntries(reconciled.map((one) => [one.name, of(one)])) as Record<Name, number>;
      let newest = { connection: 0, at: 0 };
      let latePolls = 0;
      for (const poll of tap.requests) {
        if (poll.connection > newest.connection) newest = poll;
        else if (poll.connection < newest.connection && poll.at > newest.at + lateMs) latePolls++;
      }
      return {
        sharedValues: perName(({ name }) => held[name].length),
        sharedUnexplained: reconciled.flatMap(({ unexplained }) => unexplained),
        sharedExplained: perName(({ missing, unexplained }) => missing.length - unexplained.length),
        sharedTakeovers: perName(({ takeovers }) => takeovers),
        latePolls,
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function isTakeover({ cause }: Gap): boolean {
  return cause === "takeover";
}
