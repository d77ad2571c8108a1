// Converts messages to readings. Each payload is decoded once for all its tags.
import { reasonOf } from "../../../core/errors.ts";
import type { EpochMicros } from "../../../core/point.ts";
import { badReading } from "../../../lib/readings/reading-batch.ts";
import { longProperties, type Message, payloadBytes } from "../connection/packet-reader.ts";
import { PayloadError } from "../decoders/payload.ts";
import type { MessageCounts, UnknownTopics } from "../reading/message-counts.ts";
import type { NameTables } from "../reading/name-tables.ts";
import { readTag } from "../reading/tag-reader.ts";
import type { Route, TopicRouter } from "../reading/topic-router.ts";
import type { SparkplugHost } from "../sparkplug/host.ts";
import type { ReadingSink } from "../sparkplug/metric-readings.ts";
import type { SubscriptionCopies } from "../topics/topic-trie.ts";

interface ReaderParts {
  readonly router: TopicRouter;
  /** In bytes. Larger payloads are not decoded. */
  readonly maxPayload: number;
  readonly sparkplug: SparkplugHost;
  readonly names: NameTables;
  /** Which tags read which copy of a message. */
  readonly copies: Pick<SubscriptionCopies, "isFor">;
  readonly counts: MessageCounts;
  readonly unknown: UnknownTopics;
  /** Called with an error that no payload should cause, which is a defect of the agent. */
  readonly onDefect: (error: unknown) => void;
}

/** Adds the readings of `message` to `sink`. Never throws because of its content. */
export type MessageReader = (message: Message, arrival: EpochMicros, sink: ReadingSink) => void;

/** Limit for the readings of one message. The tag that exceeds it is still read completely. */
const maxReadings = 100_000;

export function messageReader(parts: ReaderParts): MessageReader {
  const { router, maxPayload, sparkplug, names, copies, counts, unknown, onDefect } = parts;

  function read(message: Message, arrival: EpochMicros, sink: ReadingSink): void {
    const { readings } = sink;
    const routes = router.routes(message.topic);
    const hasNames = names.filters.length > 0 && learnNames(message);
    if (routes.length === 0) {
      if (!hasNames) noteUnmatched(message);
      return;
    }
    // An empty retained message deletes a retained one. Other empty messages carry no data either.
    if (payloadBytes(message) === 0) {
      counts.empty++;
      return;
    }
    let isMalformed = false;
    const complain = (route: Route, error: unknown) => {
      isMalformed = true;
      const reason = malformed(message, error);
      // Without the names in the payload, the signal of the reading is unknown.
      if (isNamedByPayload(route)) return;
      readings.push(
        badReading({ tag: route.id, captures: route.captures, address: route.from, time: arrival }, reason),
      );
    };
    const most = readings.length + maxReadings;
    for (let from = 0, to = 0; from < routes.length; from = to) {
      to = endOfGroup(routes, from);
      const group = ofCopy(to - from === routes.length ? routes : routes.slice(from, to), message);
      const wanted = message.retained ? group.filter(({ tag }) => tag.retained !== "ignore") : group;
      const way = wanted[0]?.way;
      if (!way) continue;
      try {
        checkSize(message);
        const document = way.decode(message.payload, arrival);
        if (way.address.decoder === "sparkplugB") {
          if (!sparkplug.read(wanted, message, arrival, sink)) noteUnmatched(message);
          continue;
        }
        const context = { message, document, arrival, counts, names, readings, complain };
        for (const route of wanted) {
          try {
            if (readings.length >= most)
              throw new PayloadError(`has more than ${maxReadings} values for all tags together`);
            readTag(route, context);
          } catch (error) {
            complain(route, error);
          }
        }
      } catch (error) {
        for (const route of wanted) complain(route, error);
      }
    }
    if (isMalformed) counts.malformed++;
  }

  /** The routes of `group` that read this copy. All Sparkplug tags read the same one, since its host counts messages. */
  function ofCopy(group: readonly Route[], { subscriptions }: Message): readonly Route[] {
    const [first] = group;
    if (subscriptions === undefined || !first) return group;
    if (first.way.address.decoder === "sparkplugB") return copies.isFor(first.id, subscriptions) ? group : [];
    return group.filter(({ id }) => copies.isFor(id, subscriptions));
  }

  /** Whether the message carries names. */
  function learnNames(message: Message): boolean {
    try {
      return names.learn(message, maxPayload);
    } catch (error) {
      counts.malformed++;
      malformed(message, error);
      return true;
    }
  }

  /** The reason of the readings. Confines a failure: thrown, it would end the process after each redelivery. */
  function malformed({ topic }: Message, error: unknown): string {
    const isExpected = error instanceof PayloadError;
    if (!isExpected) onDefect(error);
    const reason = `payload ${isExpected ? error.message : `cannot be read: ${reasonOf(error)}`}`;
    counts.lastMalformed = `${topic}: ${reason}`;
    return reason;
  }

  function noteUnmatched(message: Message): void {
    counts.unmatched++;
    unknown.note(message);
  }

  function checkSize(message: Message): void {
    const bytes = payloadBytes(message);
    if (bytes > maxPayload) throw new PayloadError(`of ${bytes} bytes is larger than maxPayload, ${maxPayload} bytes`);
    if (message.skippedBytes !== undefined) throw new PayloadError(`was not read: ${longProperties}`);
  }

  return read;
}

/** End of the group of routes that share the decoder of the one at `from`. */
function endOfGroup(routes: readonly Route[], from: number): number {
  const decode = routes[from]?.way.decode;
  let to = from + 1;
  while (to < routes.length && routes[to]?.way.decode === decode) to++;
  return to;
}

function isNamedByPayload({ way: { address } }: Route): boolean {
  return address.depth > 0 || address.captureNames.length > 0 || address.decoder === "sparkplugB";
}
