// Converts messages to readings. Each payload is decoded once for all its tags.
import { reasonOf } from "../../../core/errors.ts";
import type { EpochMicros } from "../../../core/point.ts";
import { badReading, type Message, payloadBytes } from "../connection/message.ts";
import { PayloadError } from "../decoders/payload.ts";
import type { MessageCounts, UnknownTopics } from "../reading/message-counts.ts";
import type { NameTables } from "../reading/name-tables.ts";
import { readTag } from "../reading/tag-reader.ts";
import type { Route, TopicRouter } from "../reading/topic-router.ts";
import type { SparkplugHost } from "../sparkplug/host.ts";
import type { ReadingSink } from "../sparkplug/metric-readings.ts";

interface ReaderOptions {
  /** In bytes. Larger payloads are not decoded. */
  readonly maxPayload: number;
  readonly sparkplug: SparkplugHost;
  readonly names: NameTables;
  readonly onNames: () => void;
  readonly unknown: UnknownTopics;
  /** Called with an error that no payload should cause, which is a defect of the agent. */
  readonly onDefect: (error: unknown) => void;
}

/** Limit for the readings of one message. The tag that exceeds it is still read completely. */
const maxReadings = 100_000;

export class MessageReader {
  readonly #router: TopicRouter;
  readonly #options: ReaderOptions;
  readonly #counts: MessageCounts;

  constructor(router: TopicRouter, options: ReaderOptions, counts: MessageCounts) {
    this.#router = router;
    this.#options = options;
    this.#counts = counts;
  }

  /** Adds the readings of `message` to `sink`. Never throws because of its content. */
  read(message: Message, arrival: EpochMicros, sink: ReadingSink): void {
    const { readings } = sink;
    const routes = this.#router.routes(message.topic);
    const told = this.#learnNames(message);
    if (routes.length === 0) {
      if (told) return;
      this.#noteUnmatched(message);
      return;
    }
    // An empty retained message deletes a retained one. Other empty messages carry no data either.
    if (payloadBytes(message) === 0) {
      this.#counts.empty++;
      return;
    }
    let malformed = false;
    const before = readings.length;
    for (let from = 0; from < routes.length; ) {
      const to = endOfGroup(routes, from);
      const group = to - from === routes.length ? routes : routes.slice(from, to);
      from = to;
      const wanted = message.retained ? group.filter(({ tag }) => tag.retained !== "ignore") : group;
      if (wanted.length === 0) continue;
      const complain = (route: Route, error: unknown) => {
        malformed = true;
        const fault = this.#faultOf(error);
        this.#counts.lastMalformed = `${message.topic}: payload ${fault.message}`;
        // Without the names in the payload, the signal of the reading is unknown.
        if (isNamedByPayload(route)) return;
        const { id, captures, from } = route;
        readings.push(badReading({ tag: id, captures, address: from, time: arrival }, `payload ${fault.message}`));
      };
      let document: unknown;
      try {
        this.#checkSize(payloadBytes(message));
        document = wanted[0]?.way.decode(message.payload, arrival);
        if (wanted[0]?.way.address.decoder === "sparkplugB") {
          if (!this.#options.sparkplug.read(wanted, message, arrival, sink)) this.#noteUnmatched(message);
          continue;
        }
      } catch (error) {
        for (const route of wanted) complain(route, error);
        continue;
      }
      const { names } = this.#options;
      const reception = { message, document, arrival, counts: this.#counts, names, readings };
      for (const route of wanted) {
        try {
          if (readings.length - before >= maxReadings)
            throw new PayloadError(`has more than ${maxReadings} values for all tags together`);
          readTag(route, reception);
        } catch (error) {
          complain(route, error);
        }
      }
    }
    if (malformed) this.#counts.malformed++;
  }

  #learnNames(message: Message): boolean {
    const { names, maxPayload, onNames } = this.#options;
    try {
      const told = names.learn(message, maxPayload);
      if (told?.changed) onNames();
      return told !== undefined;
    } catch (error) {
      this.#counts.malformed++;
      this.#counts.lastMalformed = `${message.topic}: payload ${this.#faultOf(error).message}`;
      return true;
    }
  }

  /** Confines a failure to one message. Thrown, it would end the process, and again after each redelivery. */
  #faultOf(error: unknown): PayloadError {
    if (error instanceof PayloadError) return error;
    this.#options.onDefect(error);
    return new PayloadError(`cannot be read: ${reasonOf(error)}`, {
      cause: error,
    });
  }

  #noteUnmatched(message: Message): void {
    this.#counts.unmatched++;
    this.#options.unknown.note(message);
  }

  #checkSize(bytes: number): void {
    const { maxPayload } = this.#options;
    if (bytes > maxPayload) throw new PayloadError(`of ${bytes} bytes is larger than maxPayload, ${maxPayload} bytes`);
  }
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
