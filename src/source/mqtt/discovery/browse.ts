// Listens to a broker and says which topics there are, what is in them and how a tag for each would stand.

import type { BrowsedNode, BrowseTarget } from "../../../core/commissioning.ts";
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { Secret } from "../../../core/secret.ts";
import { isAbort } from "../../../lib/abort.ts";
import { type MqttOptions, mqttOptions } from "../config/options.ts";
import { connectBroker } from "../connection/connect.ts";
import { shownUrl } from "../connection/failure.ts";
import type { Message } from "../connection/message.ts";
import { describeReason } from "../connection/reason-code.ts";
import { parseSparkplugTopic } from "../topics/sparkplug-topic.ts";
import { guessTags } from "./guess.ts";

/** How long is listened, in milliseconds: a broker lists no topics, one must wait for messages. */
const listenMs = 10_000;
/** Topics that are remembered at most. */
const maxTopics = 10_000;
/** Bytes of a payload that are looked at. */
const maxSample = 65_536;

/**
 * Listens for 10 s, or until `signal` aborts, without a session and beside every other client; then yields what came,
 * by topic. Rejects as `Driver.open` does.
 */
export async function* browseBroker(
  { url, username, password, options: configured }: BrowseTarget,
  runtime: Runtime,
  signal: AbortSignal,
): AsyncGenerator<BrowsedNode, void, undefined> {
  const heard = new Map<string, { payload: Buffer; count: number }>();
  const receive = ({ topic, payload, retained }: Message) => {
    // The payload is a view of what the socket gave, which is not ours to keep.
    if ((heard.has(topic) || heard.size < maxTopics) && payload.length > 0)
      heard.set(topic, {
        payload: Buffer.from(payload.subarray(0, maxSample)),
        // What was kept from before says nothing of the rate.
        count: (heard.get(topic)?.count ?? 0) + (retained ? 0 : 1),
      });
    return true;
  };
  const options: MqttOptions = {
    ...mqttOptions.parse({ url }),
    // What the schema of this very driver gave.
    ...(configured as Partial<MqttOptions> | undefined),
    url,
    session: mqttOptions.shape.session.parse({ persistent: false }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password: new Secret(password), passwordFile: undefined }),
  };
  const clientId = `tagferry-browse-${Math.floor(runtime.random() * 1e9)}`;
  const log = runtime.log.child({ part: "source", driver: "mqtt" });
  const attach = () => ({ receive });
  let seconds = 1;
  const { connection } = await connectBroker({ url, options, clientId, attach, log }, signal);
  {
    await using open = connection;
    const begin = runtime.clock.monotonic();
    const [code = 0x80] = await open.subscribe(["#"], { qos: 0, retainHandling: 0 });
    // No message would arrive, just as from a broker without publishers.
    if (code >= 0x80)
      throw new AgentError(
        "SOURCE_REFUSED",
        `${shownUrl(url)} refused the subscription to all topics (#): ${describeReason(code)}`,
        { hint: "let this user read # at the broker while looking, or write the tags by hand" },
      );
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
    seconds = Math.max(1, (runtime.clock.monotonic() - begin) / 1_000);
  }
  let sparkplug = false;
  for (const [topic, { payload, count }] of [...heard].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const perSecond = count / seconds;
    if (!parseSparkplugTopic(topic))
      for (const node of guessTags(topic, payload, runtime.clock.now())) yield { ...node, perSecond };
    else if (!sparkplug) {
      sparkplug = true;
      yield sparkplugNode;
    }
  }
}

const sparkplugNode: BrowsedNode = {
  address: "spBv1.0/#",
  name: "Sparkplug B",
  depth: 0,
  signal: {},
  tag: { input: "{group}.{node}.{device}.{metric}", topic: "spBv1.0/#", format: "sparkplugB" },
};
