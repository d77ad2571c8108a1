// Kills the agent at random moments while messages arrive, and reports what the service has stored in the end.
import { epochMicros } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { type Broker, deliverLast, loadConfiguration, type Published, publishLoad } from "../support/mqtt-load.ts";
import { seeded, testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

export interface KillDrill {
  readonly broker: Broker;
  readonly kills: number;
  readonly messagesPerSecond: number;
  /** A program to run in place of the agent, to show that the drill can fail. */
  readonly entry?: string;
  readonly seed: number;
  /** Called once in each run of the agent, while messages arrive. */
  readonly disturb?: () => Promise<void>;
  /** Whether the broker itself may have lost a message that it acknowledged at this time (`performance.now`). */
  readonly excused?: (acknowledgedAt: number) => boolean;
}

export interface KillDrillResult {
  readonly published: number;
  /** The number of missing messages that the broker itself may have lost. */
  readonly excused: number;
  /** Messages that the broker acknowledged and the service does not have, without the excused ones. */
  readonly missing: readonly string[];
  /** Messages that the service received more than once. */
  readonly repeated: readonly string[];
}

const signal = new AbortController().signal;

/** Kills the agent `kills` times under load, starts it a last time, and resolves when it has delivered everything. */
export async function killDrill({
  broker,
  kills,
  messagesPerSecond,
  entry,
  seed,
  disturb,
  excused,
}: KillDrill): Promise<KillDrillResult> {
  using folder = temporaryFolder();
  const runtime = testRuntime({ seed });
  const random = seeded(seed);
  await using service = await testService({ throttle: "queue" });
  const options = {
    folder: folder.path,
    configuration: loadConfiguration(folder.path, service.url, broker),
    ...(entry && { entry }),
  };
  const from = runtime.clock.now();

  {
    // The agent subscribes once before the first message. Afterwards the broker queues messages in its session.
    await using first = await startAgent(options);
    await eventually(async () => (await first.status()).sources[0]?.state === "online");
  }
  await using load = await publishLoad(broker, messagesPerSecond);
  for (let kill = 0; kill < kills; kill++) {
    await using agent = await startAgent(options);
    await runtime.clock.sleep(100 + random() * 1_200, signal);
    await disturb?.();
    if (disturb) await runtime.clock.sleep(random() * 1_200, signal);
    await agent.kill();
  }
  const published = await load.end();

  await using last = await startAgent(options);
  await deliverLast(load, last, 180_000);
  await last.stop();

  const before = epochMicros(runtime.clock.now() + 60e6);
  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const stored = await readBack(reader, { from, before }, runtime, signal);
  const missing = published.filter(([input, value, at]) => !stored.get(input)?.has(value) && !excused?.(at));
  const repeated = published.filter(([input, value]) => (stored.get(input)?.get(value)?.length ?? 0) > 1);
  const brief = (messages: Published) => messages.map(([input, value]) => `${input}=${value}`);
  const excusedCount = published.filter(([, , at]) => excused?.(at)).length;
  return {
    published: published.length,
    excused: excusedCount,
    missing: brief(missing),
    repeated: brief(repeated),
  };
}
