// Listens to a broker, and proposes tags for the topics and values it finds.

import type { BrowsedNode, BrowseListener, BrowseTarget } from "../../../core/commissioning.ts";
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { Secret } from "../../../core/secret.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import { type MqttOptions, mqttOptions } from "../config/options.ts";
import { connectBroker } from "../connection/connect.ts";
import { shownUrl } from "../connection/failure.ts";
import type { Message } from "../connection/packet-reader.ts";
import { meaningOf } from "../connection/reason-code.ts";
import { parseSparkplugTopic } from "../topics/sparkplug-topic.ts";
import { guessTags } from "./guess.ts";

/** Listening time in milliseconds. A broker does not list topics, so messages are awaited. */
const listenMs = 10_000;
const maxTopics = 10_000;
/** Most bytes of a payload that are examined. */
const maxSample = 65_536;

/** Listens for 10 s, or until `signal` aborts, then yields values by topic. Rejects as `Driver.open` does. */
export async function* browseBroker(
  target: BrowseTarget,
  runtime: Runtime,
  signal: AbortSignal,
): AsyncGenerator<BrowsedNode, void, undefined> {
  const listener = await listenToBroker(target, runtime, signal);
  {
    await using open = listener;
    try {
      await Promise.race([
        runtime.clock.sleep(listenMs, signal),
        open.lost.then((error) => {
          throw error;
        }),
      ]);
    } catch (error) {
      if (!isAbort(error, signal)) throw error;
    }
  }
  yield* listener.nodes();
}

/** Subscribes to all topics. Rejects as `Driver.open` does. What was received stays after disposal. */
export async function listenToBroker(
  { url, username, password, options: configured }: BrowseTarget,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<BrowseListener> {
  const received = new Map<string, { payload: Buffer; count: number }>();
  const receive = ({ topic, payload, retained }: Message) => {
    // The payload is a view of a socket buffer, so it is copied.
    if ((received.has(topic) || received.size < maxTopics) && payload.length > 0)
      received.set(topic, {
        payload: Buffer.from(payload.subarray(0, maxSample)),
        // Retained messages do not count for the rate.
        count: (received.get(topic)?.count ?? 0) + (retained ? 0 : 1),
      });
    return true;
  };
  const options: MqttOptions = {
    ...mqttOptions.parse({ url }),
    // Validated by the schema of this driver.
    ...(configured as Partial<MqttOptions> | undefined),
    url,
    session: mqttOptions.shape.session.parse({ persistent: false }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password: new Secret(password), passwordFile: undefined }),
  };
  const clientId = `tagferry-browse-${Math.floor(runtime.random() * 1e9)}`;
  const log = runtime.log.child({ part: "source", driver: "mqtt" });
  const attach = () => ({ receive });
  const { connection } = await connectBroker({ url, options, clientId, attach, log }, signal);
  await using opening = new AsyncDisposableStack();
  const open = opening.use(connection);
  const begin = runtime.clock.monotonic();
  let end: number | undefined;
  const [code = 0x80] = await open.subscribe(["#"], { qos: 0, retainHandling: 0 });
  // Without this check, a refusal would look like a broker without publishers.
  if (code >= 0x80)
    throw new AgentError(
      "SOURCE_REFUSED",
      `${shownUrl(url)} refused the subscription to all topics (#): ${meaningOf(code).text}`,
      { hint: "let this user read # at the broker while looking, or write the tags by hand" },
    );
  const owned = opening.move();
  return {
    lost: open.lost,
    *nodes() {
      const seconds = Math.max(1, ((end ?? runtime.clock.monotonic()) - begin) / 1_000);
      let sparkplug = false;
      for (const [topic, { payload, count }] of [...received].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
        const perSecond = count / seconds;
        if (!parseSparkplugTopic(topic))
          for (const node of guessTags(topic, payload, runtime.clock.now())) yield { ...node, perSecond };
        else if (!sparkplug) {
          sparkplug = true;
          yield sparkplugNode;
        }
      }
    },
    async [Symbol.asyncDispose]() {
      end ??= runtime.clock.monotonic();
      await owned.disposeAsync();
    },
  };
}

const sparkplugNode: BrowsedNode = {
  address: "spBv1.0/#",
  name: "Sparkplug B",
  depth: 0,
  signal: {},
  tag: { input: "{group}.{node}.{device}.{metric}", topic: "spBv1.0/#", format: "sparkplugB" },
};
