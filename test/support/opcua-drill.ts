// The whole job with an OPC UA server that is restarted and cut off at random moments: agent, local service, gap record.
// Whatever the server has held is in the service, or in an interval of the record that is not said to be filled.
import { openAgent } from "../../src/agent/agent.ts";
import type { Gap } from "../../src/agent/gaps/gap.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import type { Clock } from "../../src/core/runtime.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { load } from "./config.ts";
import { eventually } from "./eventually.ts";
import { lineNamespace, type OpcuaServer, opcuaServer } from "./opcua-server.ts";
import { seeded, testRuntime } from "./runtime.ts";
import { integration, password, testService } from "./service.ts";
import { tcpProxy } from "./tcp-proxy.ts";
import type { TemporaryFolder } from "./temporary-folder.ts";

export interface DrillResult {
  readonly restarts: number;
  readonly cuts: number;
  readonly silences: number;
  /** Silences after which the server had not kept what it had said. */
  readonly forgotten: number;
  /** Values the server held, and those of them that the service has. */
  readonly held: number;
  readonly stored: number;
  /** Neither in the service nor in the record. */
  readonly unexplained: readonly string[];
  readonly gaps: readonly Gap[];
  /** Seconds that the drill took, and how many of them the record says something is missing of. */
  readonly seconds: number;
  readonly missingSeconds: number;
}

/** A value that the server held. */
interface Held {
  readonly input: InputId;
  readonly value: number;
  /** Source time, microseconds. */
  readonly at: number;
}

const inputs = ["count", "temp"] as InputId[]; // as in the configuration below
/** Silences are noticed, back-off passes and history is asked four times as soon as in earnest. */
const hurry = 4;

/** Resolves when `events` have happened and all is delivered that will be. */
export async function opcuaDrill(folder: TemporaryFolder, events: number, seed: number): Promise<DrillResult> {
  const random = seeded(seed);
  const clock = systemClock();
  const hurried: Clock = {
    now: () => clock.now(),
    monotonic: () => hurry * clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms / hurry, signal),
  };
  const never = new AbortController().signal;
  const sleep = (ms: number) => clock.sleep(ms, never);
  const runtime = testRuntime({ clock: hurried });
  const from = clock.now();
  await using service = await testService({ throttle: "off" });
  let server: OpcuaServer = await opcuaServer({ folder: folder.file("server") });
  const { port } = server;
  await using network = await tcpProxy(port);
  const config = await load(`version: 1
agent: { name: gw1, dataDir: ${folder.file("data")} }
service: { url: ${service.url}, integration: ${integration}, auth: { basic: { password: "${password}" } } }
sources:
  line:
    type: opcua
    url: opc.tcp://127.0.0.1:${network.port}
    security: { mode: none }
    timeout: 2s
    every: 50ms
    subscription: { keepAlive: 500ms, bridge: 60s }
    tags:
      - { input: count, node: "nsu=${lineNamespace};s=Count" }
      - { input: temp, node: "nsu=${lineNamespace};s=Temp" }
`);
  const held: Held[] = [];
  const waiting: Held[] = [];
  let value = 1_000;
  let running = true;
  /** Sets the next values, and notes what became of the last ones: only what was sampled or recorded was held. */
  const write = () => {
    for (const each of waiting.splice(0))
      if ((each.input === inputs[0] ? server.counted : server.temps).has(each.value)) held.push(each);
      else if (each.input === inputs[1] && server.subscriptions === 0) held.push(each);
    if (!running) return;
    value++;
    const at = new Date();
    server.set("Count", value, at);
    server.set("Temp", value, at);
    for (const input of inputs) waiting.push({ input, value, at: at.getTime() * 1_000 });
  };
  const agent = await openAgent(config, { version: "0" }, runtime, never);
  let [restarts, cuts, silences, forgotten] = [0, 0, 0, 0];
  await eventually(() => agent.status().tags.every(({ quality }) => quality === "good"), 30_000);
  const writing = setInterval(write, 250);
  const started = clock.now();
  try {
    for (let event = 0; event < events; event++) {
      await sleep(1_500 * random());
      const kind = random();
      if (kind < 0.5) {
        restarts++;
        // As a power cut, where the network goes first.
        if (random() < 0.5) network.cut();
        write();
        running = false;
        await server[Symbol.asyncDispose]();
        waiting.length = 0;
        await sleep(300 * random());
        server = await opcuaServer({ folder: folder.file("server"), port });
        running = true;
      } else {
        cuts++;
        if (kind > 0.8) {
          silences++;
          network.muteDevice();
          await sleep(2_000 * random());
        }
        network.cut();
        if (kind > 0.9) {
          forgotten++;
          server.forget();
        }
        await sleep(800 * random());
      }
      network.mend();
      await eventually(() => agent.status().sources[0]?.state === "online", 60_000);
    }
    await sleep(1_000);
    running = false;
    await sleep(500);
    await eventually(() => {
      const open = agent.gaps(1e9, 5_000).gaps.filter(({ state }) => state === "filling");
      if (open.length > 0) throw new Error(`still being filled: ${JSON.stringify(open)}`);
      return true;
    }, 120_000);
    await eventually(() => agent.status().upload.backlogPoints === 0, 60_000);
  } finally {
    clearInterval(writing);
    await agent[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  }
  const { gaps } = agent.gaps(1e9, 5_000);
  const before = epochMicros(clock.now() + 60e6);
  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const stored = await readBack(reader, { from: epochMicros(from - 60e6), before }, testRuntime(), never);
  const missing = held.filter(({ input, value: wanted }) => !stored.get(input)?.has(wanted));
  return {
    restarts,
    cuts,
    silences,
    forgotten,
    held: held.length,
    stored: held.length - missing.length,
    unexplained: missing
      .filter((each) => !gaps.some((gap) => covers(gap, each)))
      .map(({ input, value: lost, at }) => `${input} ${lost} at ${new Date(at / 1_000).toISOString()}`),
    gaps,
    seconds: Math.round((clock.now() - started) / 1e6),
    missingSeconds: Math.round(secondsOf(gaps.filter(({ state }) => state !== "filled"))),
  };
}

/** Of all moments that any of the rows says something is missing of. */
function secondsOf(gaps: readonly Gap[]): number {
  const spans = gaps.flatMap(({ intervals, from, to }) => intervals ?? [[from, to ?? from] as const]);
  let [sum, end] = [0, 0];
  for (const [from, to] of spans.toSorted((a, b) => a[0] - b[0])) {
    sum += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return sum / 1e6;
}

/** Whether the record says that this value is missing, or may be. */
function covers({ from, to, intervals, inputs, state, unfilled }: Gap, { input, at }: Held): boolean {
  const times = intervals ?? [[from, to ?? Number.POSITIVE_INFINITY]];
  if (state === "filled" || !times.some(([begin, end]) => at >= begin && at <= end)) return false;
  const concerned = state === "partly" ? (unfilled?.inputs ?? []) : inputs;
  return concerned.length === 0 || concerned.includes(input);
}
