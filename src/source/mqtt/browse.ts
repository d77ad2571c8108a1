// Listens to a broker and says which topics there are, what is in them and how a tag for each would stand.
import type { Runtime } from "../../core/runtime.ts";
import { Secret } from "../../core/secret.ts";
import type { BrowsedNode, BrowseTarget } from "../../core/source.ts";
import { isAbort } from "../../lib/abort.ts";
import type { Message } from "./client.ts";
import { connectBroker } from "./connect.ts";
import { guessTags } from "./guess.ts";
import { mqttOptions } from "./options.ts";
import { parseSparkplugTopic } from "./sparkplug/topic.ts";

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
  { url, username, password }: BrowseTarget,
  runtime: Runtime,
  signal: AbortSignal,
): AsyncGenerator<BrowsedNode, void, undefined> {
  const payloads = new Map<string, Buffer>();
  const receive = ({ topic, payload }: Message) => {
    // The payload is a view of what the socket gave, which is not ours to keep.
    if ((payloads.has(topic) || payloads.size < maxTopics) && payload.length > 0)
      payloads.set(topic, Buffer.from(payload.subarray(0, maxSample)));
    return true;
  };
  const options = {
    ...mqttOptions.parse({ url, session: { persistent: false } }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password: new Secret(password) }),
  };
  const clientId = `tagferry-browse-${Math.floor(runtime.random() * 1e9)}`;
  const log = runtime.log.child({ part: "source", driver: "mqtt" });
  const attach = () => ({ receive });
  const { connection } = await connectBroker({ url, options, clientId, spoken: undefined, attach, log }, signal);
  {
    await using open = connection;
    await open.subscribe(["#"], { qos: 0, retainHandling: 0 });
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
  let sparkplug = false;
  for (const [topic, payload] of [...payloads].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (!parseSparkplugTopic(topic)) yield* guessTags(topic, payload, runtime.clock.now());
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
