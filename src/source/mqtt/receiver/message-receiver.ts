// Receives the messages of a connection, delivers their readings, and notices tags that have none.
import type { EpochMicros } from "../../../core/point.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, Reading, TagId } from "../../../core/source.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import { RateLimitedLog } from "../../../lib/flow/rate-limited-log.ts";
import { badReading } from "../../../lib/readings/reading-batch.ts";
import { formatDuration } from "../../../lib/time/duration.ts";
import type { MqttTag } from "../config/tag.ts";
import { tagCaptures, tagFilter } from "../config/tag-address.ts";
import type { BrokerConnection, MessageHandler } from "../connection/client.ts";
import { MessageCounts, UnknownTopics } from "../reading/message-counts.ts";
import { NameTables } from "../reading/name-tables.ts";
import { TopicRouter, waysOf } from "../reading/topic-router.ts";
import { RebirthRequests } from "../sparkplug/edge-node.ts";
import { SparkplugHost } from "../sparkplug/host.ts";
import { SubscriptionCopies } from "../topics/topic-trie.ts";
import { messageReader } from "./message-reader.ts";
import { type Batch, receiveQueue } from "./receive-queue.ts";

export interface MessageReceiverOptions {
  readonly source: string;
  readonly tags: readonly MqttTag[];
  /** Bytes. */
  readonly maxPayload: number;
  /** Whether unknown Sparkplug edge nodes are asked for a rebirth. */
  readonly requestRebirth: boolean;
  /** Most unacknowledged messages that the broker may send. Omitted: unknown. */
  readonly receiveMaximum?: number;
  /** Names that devices sent on earlier connections. Omitted: none. */
  readonly names?: NameTables;
  /** Filters that a resumed session has. Omitted: none. */
  readonly inSession?: readonly string[];
}

/** Most readings of a delivery, as required by `Source.deliveries`. */
const maxReadings = 10_000;
/** A batch of this size indicates a backlog at the broker and is synced without delay. */
const backlogBatch = 256;
/** Fewest cached topics. Fewer than the 100,000 inputs of a large site would evict recurring topics. */
const rememberedTopics = 131_072;

/** Receives the messages of one connection and returns them as deliveries. */
export function openMessageReceiver(options: MessageReceiverOptions, runtime: Runtime, link: BrokerConnection) {
  const { source, tags, maxPayload, requestRebirth, names = new NameTables(tags) } = options;
  const { clock, metrics } = runtime;
  const monotonic = () => clock.monotonic();
  const limitedLog = new RateLimitedLog(runtime);
  const counts = new MessageCounts();
  const unknown = new UnknownTopics();
  const rebirths = new RebirthRequests(requestRebirth ? publish : undefined);
  const sparkplug = new SparkplugHost({ maxPayload, rebirths, counts, monotonic });
  const router = new TopicRouter(tags, waysOf(maxPayload), rememberedTopics);
  const copies = new SubscriptionCopies((id) => tagFilter(tags[id]!)); // a TagId is an index
  const read = messageReader({ router, copies, maxPayload, sparkplug, names, counts, unknown, onDefect });
  const queue = receiveQueue({
    maxReadings,
    receiveMaximum: options.receiveMaximum,
    monotonic,
    acknowledge(held) {
      counts.acknowledged += held.length;
      link.acknowledge(held);
    },
    onRoom() {
      if (stalledSince === undefined || queue.full) return;
      stalledSince = undefined;
      link.resume();
    },
  });
  const firstStall = Promise.withResolvers<void>();
  let stalledSince: number | undefined;
  /** Arrival time of messages in the current event loop turn. Undefined between turns. */
  let turn: EpochMicros | undefined;
  let stale: ReturnType<typeof staleTagWatch>;
  let isClosed = false;
  let hasDefect = false;

  /** Logged once, since the next message may cause the same error. */
  function onDefect(error: unknown): void {
    const text = "cannot read a message because of a defect in the agent; the message is skipped";
    if (!hasDefect) runtime.log.error({ err: error }, text);
    hasDefect = true;
  }

  function publish(topic: string, payload: Buffer): void {
    if (!isClosed) link.publish(topic, payload);
  }

  /** Reads the Sparkplug messages that have waited too long for others, or for at least `forMs` milliseconds. */
  function readWaiting(forMs?: number): void {
    queue.put(undefined, (sink) => sparkplug.releaseOverdue(clock.now(), sink, forMs));
  }

  function beginTurn(): EpochMicros {
    // Runs after all messages of the chunk, which are read without a pause.
    queueMicrotask(() => {
      turn = undefined;
      queue.settle();
      counts.publish(metrics, source);
    });
    return clock.now();
  }

  function deliveryOf(batch: Batch): Delivery {
    const { readings, descriptions, hurry } = batch;
    stale?.received(readings, monotonic());
    return {
      readings,
      descriptions,
      awaited: hurry !== undefined || readings.length >= backlogBatch,
      ...(hurry && { hurry }),
      ack() {
        queue.release(batch);
        counts.publish(metrics, source);
      },
    };
  }

  /** Stops receiving. Later messages are neither read nor acknowledged. */
  function close(): void {
    isClosed = true;
    link.resume();
  }

  return {
    receive(message) {
      if (isClosed) return true;
      // Messages of a chunk are read in one turn and share an arrival time, which compresses well.
      const arrival = (turn ??= beginTurn());
      const { topic, held, skippedBytes: bytes } = message;
      counts.received++;
      if (bytes !== undefined) {
        counts.noteOversized(topic, bytes, maxPayload);
        limitedLog.warn(
          { source, topic, bytes, maxPayload },
          bytes > maxPayload
            ? "a message is larger than maxPayload and was skipped; raise maxPayload or narrow the topic of the tag"
            : "a message with too long properties was skipped; narrow the topic of the tag",
        );
      }
      queue.put(held, (sink) => read(message, arrival, sink));
      if (!queue.full) return true;
      stalledSince ??= monotonic();
      firstStall.resolve();
      return false;
    },
    /** Resolves when reading first stops because the queue is full. */
    firstStall: firstStall.promise,
    /** How long the socket has not been read because the queue is full, in milliseconds. Undefined: it is read. */
    get stalledMs(): number | undefined {
      return stalledSince === undefined ? undefined : monotonic() - stalledSince;
    },
    /** For the status: faulty messages, number of edge nodes, and number of nodes without a birth. */
    get details(): Readonly<Record<string, string | number>> {
      const { nodes, unborn } = sparkplug;
      return { ...(nodes > 0 && { sparkplugNodes: nodes, waitingForBirth: unborn }), ...counts.details };
    },
    /** The topics with the most messages that no tag wants. */
    unknown: () => unknown.top(),
    connected(resumed: boolean): void {
      if (resumed) copies.granted(options.inSession ?? []);
      stale = staleTagWatch(tags, monotonic());
    },
    /** Undefined: no tag is watched. */
    get stale(): ReturnType<typeof staleTagWatch> {
      return stale;
    },
    /** Call with the filters that the broker has granted, before others are unsubscribed. */
    subscribed: (filters: readonly string[]): void => copies.granted(filters),
    /** Adds readings that do not originate from a message. */
    add(readings: readonly Reading[]): void {
      queue.put(undefined, (batch) => {
        for (const reading of readings) batch.readings.push(reading);
      });
      queue.settle();
    },
    /** Delivers Sparkplug messages that waited too long for missing earlier ones. */
    releaseOverdue(): void {
      if (queue.full) return;
      readWaiting();
      queue.settle();
    },
    /** As `Source.deliveries`. After an abort it stops receiving and yields what has arrived, so that it is stored. */
    async *deliveries(signal: AbortSignal): AsyncGenerator<Delivery, void, undefined> {
      try {
        for (;;) yield deliveryOf(await queue.take(signal));
      } catch (error) {
        if (!isAbort(error, signal)) throw error;
      }
      close();
      readWaiting(0);
      for (let batch = queue.takeNow(); batch; batch = queue.takeNow()) yield deliveryOf(batch);
    },
    close,
    /** Call after a connection loss. `deliveries` first yields what has arrived, then throws `error`. */
    fail(error: unknown): void {
      readWaiting(0);
      queue.fail(error);
    },
  } satisfies MessageHandler & Record<string, unknown>;
}

// Detects tags without messages for longer than expected. A broker may grant a subscription but withhold the messages,
// and a broken device sends none. No other mechanism detects either case.

interface WatchedTag {
  readonly id: TagId;
  readonly topic: string;
  /** Milliseconds. */
  readonly expectEvery: number;
  /** Whether the tag has no captures, so that its signal is known. */
  readonly named: boolean;
  received: number;
  reported: boolean;
}

/** Begins to watch the tags. Undefined: none of them is to be watched. `nowMs` is monotonic in all methods. */
export function staleTagWatch(tags: readonly MqttTag[], nowMs: number) {
  const watchedTags = new Map<TagId, WatchedTag>();
  /** Readings created here, which do not count as messages. */
  const own = new WeakSet<Reading>();
  for (const [index, tag] of tags.entries()) {
    const { expectEvery, topic } = tag;
    if (expectEvery === undefined) continue;
    const id = index as TagId; // a TagId is the index of its tag
    const named = tagCaptures(tag).length === 0;
    watchedTags.set(id, { id, topic: topic.text, expectEvery, named, received: nowMs, reported: false });
  }
  if (watchedTags.size === 0) return undefined;

  return {
    /** Milliseconds between checks. */
    intervalMs: Math.min(...watchedTags.values().map(({ expectEvery }) => expectEvery)) / 4,
    received(readings: readonly Reading[], nowMs: number): void {
      for (const reading of readings) {
        const watched = watchedTags.get(reading.tag);
        if (!watched || own.has(reading)) continue;
        watched.received = nowMs;
        watched.reported = false;
      }
    },
    /** Tags that became silent since the last check, each with a reading that says so if its signal is known. */
    check(nowMs: number, time: EpochMicros) {
      const silent = [...watchedTags.values()].filter(
        ({ reported, received, expectEvery }) => !reported && nowMs - received >= expectEvery,
      );
      return silent.map((watched) => {
        const { id, topic, expectEvery, named } = watched;
        watched.reported = true;
        const place = { tag: id, captures: {}, address: topic, time };
        const reading = badReading(place, `no message for ${formatDuration(expectEvery)}`);
        own.add(reading);
        return { topic, expectEvery, readings: named ? [reading] : [] };
      });
    },
  };
}
