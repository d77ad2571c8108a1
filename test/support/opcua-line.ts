// A production line for the drills: an OPC UA server with distinct values behind a network that can be cut. It records
// which values the server held. A restart loses everything in its memory, including its history.
import { setTimeout as sleep } from "node:timers/promises";
import type { InputId } from "../../src/core/point.ts";
import type { Held } from "./gap-reconciliation.ts";
import { lineNamespace, type OpcuaServer, opcuaServer } from "./opcua-server.ts";
import { type TcpProxy, tcpProxy } from "./tcp-proxy.ts";

export interface OpcuaLine extends AsyncDisposable {
  readonly network: TcpProxy;
  /** Values that were sampled or recorded in its history. Each must be in the service or in the gap record. */
  readonly held: readonly Held[];
  /** The current server. */
  readonly server: OpcuaServer;
  /** Starts to change values. The agent must have its subscription. */
  begin(): void;
  /** Stops changing values. Resolves when it is known which values were held. */
  end(): Promise<void>;
  /** Ends the server and restarts it on the same port, as after a power cut in which the network failed first. */
  restart(whileAway: () => Promise<void>): Promise<void>;
  readonly source: (options: LineSource) => string;
}

/** The source section of a configuration. */
export interface LineSource {
  /** The timeout of the agent's calls. */
  readonly timeout: string;
  /** The size of the server's queue for a tag. */
  readonly queue: number;
  /** With an additional tag that never changes. */
  readonly more?: boolean;
}

export const lineInputs = ["line.count", "line.temp"] as InputId[]; // the inputs of the source below
const [count, temp] = lineInputs;
const everyMs = 250;

export async function opcuaLine(folder: string): Promise<OpcuaLine> {
  await using opening = new AsyncDisposableStack();
  let server = await opcuaServer({ folder });
  opening.defer(() => server[Symbol.asyncDispose]());
  const { port } = server;
  const network = opening.use(await tcpProxy(port));
  const held: Held[] = [];
  const waiting: Held[] = [];
  let value = 1_000;
  let lastMs = 0;
  let writing = false;
  /** Records which of the previous values were held, and sets the next ones. */
  const write = () => {
    for (const each of waiting.splice(0)) {
      const sampled = each.input === count ? server.counted : server.temps;
      if (sampled.has(each.value) || (each.input === temp && server.subscriptions === 0)) held.push(each);
    }
    if (!writing) return;
    value++;
    // Each value gets its own time, even if this is called twice within a millisecond.
    lastMs = Math.max(Date.now(), lastMs + 1);
    const at = new Date(lastMs);
    server.set("Count", value, at);
    server.set("Temp", value, at);
    for (const input of lineInputs) waiting.push({ input, value, at: at.getTime() * 1_000, stamped: true });
  };
  const ticking = setInterval(write, everyMs);
  opening.defer(() => clearInterval(ticking));
  const owned = opening.move();
  return {
    network,
    held,
    get server() {
      return server;
    },
    begin() {
      writing = true;
    },
    async end() {
      writing = false;
      await sleep(2 * everyMs);
    },
    async restart(whileAway) {
      write();
      writing = false;
      await server[Symbol.asyncDispose]();
      waiting.length = 0;
      await whileAway();
      server = await opcuaServer({ folder, port });
      writing = true;
    },
    source: ({ timeout, queue, more = false }) => `
  line:
    type: opcua
    url: opc.tcp://127.0.0.1:${network.port}
    security: { mode: none }
    timeout: ${timeout}
    every: 50ms
    subscription: { keepAlive: 500ms, queue: ${queue} }
    tags:
      - { input: ${count}, node: "nsu=${lineNamespace};s=Count" }
      - { input: ${temp}, node: "nsu=${lineNamespace};s=Temp" }
${more ? `      - { input: more.ratio, node: "nsu=${lineNamespace};s=Ratio" }\n` : ""}`,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
