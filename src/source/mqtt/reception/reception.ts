// Receives the messages of a connection and delivers their readings.
import type { EpochMicros } from "../../../core/point.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, Reading, UnknownAddress } from "../../../core/source.ts";
import { RateLimitedLog } from "../../../lib/rate-limited-log.ts";
import type { MqttTag } from "../config/tag.ts";
import type { BrokerConnection, MessageHandler } from "../connection/client.ts";
import type { HeldPacket, Message } from "../connection/message.ts";
import { MessageCounts, UnknownTopics } from "../reading/message-counts.ts";
import { NameTables } from "../reading/name-tables.ts";
import { TopicRouter, waysOf } from "../reading/topic-router.ts";
import { RebirthRequests } from "../sparkplug/edge-node.ts";
import { SparkplugHost } from "../sparkplug/host.ts";
import { type Batch, Inbox } from "./inbox.ts";
import { MessageReader } from "./message-reader.ts";
import { SendWindow } from "./send-window.ts";

export interface ReceptionOptions {
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
  readonly onNames?: () => void;
}

/** Most readings of a delivery, as required by `Source.deliveries`. */
const maxReadings = 10_000;
/** A batch of this size indicates a backlog at the broker and is synced without delay. */
const crowd = 256;
/** Fewest cached topics. Fewer than the 100,000 inputs of a large site would evict recurring topics. */
const rememberedTopics = 131_072;

/** Receives the messages of one connection and returns them as deliveries. */
export class Reception implements MessageHandler {
  readonly #runtime: Runtime;
  readonly #options: ReceptionOptions;
  readonly #log: RateLimitedLog;
  readonly #link: BrokerConnection;
  readonly #inbox: Inbox;
  readonly #reader: MessageReader;
  readonly #sparkplug: SparkplugHost;
  readonly #window: SendWindow;
  readonly #unknown = new UnknownTopics();
  readonly #counts = new MessageCounts();
  /** Arrival time of messages in the current event loop turn. Undefined between turns. */
  #arrival: EpochMicros | undefined;
  /** Messages of this turn that need an acknowledgement. */
  #arrived = 0;
  #stalledSince: number | undefined;
  #taken: (readings: readonly Reading[]) => void = () => {};
  readonly #firstStall = Promise.withResolvers<void>();
  #closed = false;
  #defectTold = false;

  constructor(options: ReceptionOptions, runtime: Runtime, link: BrokerConnection) {
    const { tags, maxPayload, requestRebirth, names = new NameTables(tags), onNames = () => {} } = options;
    this.#runtime = runtime;
    this.#options = options;
    this.#log = new RateLimitedLog(runtime);
    this.#link = link;
    this.#window = new SendWindow(options.receiveMaximum);
    const acknowledge = (held: readonly HeldPacket[]) => this.#acknowledge(held);
    this.#inbox = new Inbox({ maxReadings, acknowledge, onRoom: () => this.#readOn() });
    const rebirths = new RebirthRequests(requestRebirth ? link.publish.bind(link) : undefined);
    const monotonic = () => runtime.clock.monotonic();
    const sparkplug = new SparkplugHost({ maxPayload, rebirths, counts: this.#counts, monotonic });
    const router = new TopicRouter(tags, waysOf(maxPayload), rememberedTopics);
    const unknown = this.#unknown;
    this.#sparkplug = sparkplug;
    const onDefect = (error: unknown) => this.#tellDefect(error);
    const reading = { maxPayload, sparkplug, names, onNames, unknown, onDefect };
    this.#reader = new MessageReader(router, reading, this.#counts);
  }

  receive(message: Message): boolean {
    if (this.#closed) return true;
    // Messages of a chunk are read in one turn and share an arrival time, which compresses well.
    const arrival = (this.#arrival ??= this.#beginTurn());
    this.#counts.received++;
    if (message.held !== undefined) this.#arrived++;
    if (message.skippedBytes !== undefined) this.#noteOversized(message.topic, message.skippedBytes);
    this.#inbox.put(message.held, (sink) => this.#reader.read(message, arrival, sink));
    if (!this.#inbox.full) return true;
    this.#stalledSince ??= this.#runtime.clock.monotonic();
    this.#firstStall.resolve();
    return false;
  }

  /** Resolves when reading first stops because the inbox is full. */
  get firstStall(): Promise<void> {
    return this.#firstStall.promise;
  }

  /** How long the socket has not been read because the inbox is full, in milliseconds. Undefined: it is read. */
  get stalledMs(): number | undefined {
    return this.#stalledSince === undefined ? undefined : this.#runtime.clock.monotonic() - this.#stalledSince;
  }

  /** For the status: faulty messages, number of edge nodes, and number of nodes without a birth. */
  get details(): Readonly<Record<string, string | number>> {
    const { nodes, unborn } = this.#sparkplug;
    return { ...(nodes > 0 && { sparkplugNodes: nodes, waitingForBirth: unborn }), ...this.#counts.details };
  }

  get unknown(): readonly UnknownAddress[] {
    return this.#unknown.top();
  }

  /** `taken` is called with the readings of each delivery. */
  onTaken(taken: (readings: readonly Reading[]) => void): void {
    this.#taken = taken;
  }

  /** Adds readings that do not originate from a message. */
  add(readings: readonly Reading[]): void {
    this.#inbox.put(undefined, (batch) => {
      for (const reading of readings) batch.readings.push(reading);
    });
    this.#inbox.settle();
  }

  /** Delivers Sparkplug messages that waited too long for missing earlier ones. */
  releaseOverdue(): void {
    if (!this.#sparkplug.overdue || this.#inbox.full) return;
    const now = this.#runtime.clock.now();
    this.#inbox.put(undefined, (sink) => this.#sparkplug.releaseOverdue(now, sink));
    this.#inbox.settle();
  }

  /** Resolves with the readings since the last call, once there are any. Rejects as `HandOver.take` does. */
  async take(signal: AbortSignal): Promise<Delivery> {
    return this.#delivery(await this.#inbox.take(signal));
  }

  /** Stops receiving and yields what has arrived. */
  *rest(): Generator<Delivery> {
    this.close();
    for (let batch = this.#inbox.takeNow(); batch; batch = this.#inbox.takeNow()) yield this.#delivery(batch);
  }

  #delivery(batch: Batch): Delivery {
    this.#taken(batch.readings);
    const isHeld = batch.held.length > 0;
    const hurry = isHeld
      ? new Promise<void>((resolve) => this.#window.waiting(this.#runtime.clock.monotonic(), resolve))
      : undefined;
    return {
      readings: batch.readings,
      descriptions: batch.descriptions,
      awaited: isHeld || batch.readings.length >= crowd,
      ...(hurry && { hurry }),
      ack: () => {
        if (hurry) this.#window.stored(this.#runtime.clock.monotonic());
        this.#inbox.release(batch);
        this.#counts.publish(this.#runtime.metrics, this.#options.source);
      },
    };
  }

  /** Call after a connection loss. `take` first returns what has arrived, then rejects with `error`. */
  fail(error: unknown): void {
    // Sparkplug messages that wait for others which can no longer arrive.
    this.#inbox.put(undefined, (sink) => this.#sparkplug.releaseOverdue(this.#runtime.clock.now(), sink, 0));
    this.#inbox.fail(error);
  }

  /** Stops receiving. Later messages are neither read nor acknowledged. */
  close(): void {
    this.#closed = true;
    this.#link.resume();
  }

  #beginTurn(): EpochMicros {
    // Runs after all messages of the chunk, which are read without a pause.
    queueMicrotask(() => {
      this.#arrival = undefined;
      this.#window.received(this.#arrived, this.#runtime.clock.monotonic());
      this.#arrived = 0;
      this.#inbox.settle();
      this.#counts.publish(this.#runtime.metrics, this.#options.source);
    });
    return this.#runtime.clock.now();
  }

  #readOn(): void {
    if (this.#stalledSince === undefined || this.#inbox.full) return;
    this.#stalledSince = undefined;
    this.#link.resume();
  }

  #noteOversized(topic: string, bytes: number): void {
    const { source, maxPayload } = this.#options;
    this.#counts.noteOversized(topic, bytes, maxPayload);
    this.#log.warn(
      { source, topic, bytes, maxPayload },
      "a message is larger than maxPayload and was skipped; raise maxPayload or narrow the topic of the tag",
    );
  }

  /** Logged once, since the next message may cause the same error. */
  #tellDefect(error: unknown): void {
    if (!this.#defectTold)
      this.#runtime.log.error(
        { err: error },
        "cannot read a message because of a defect in the agent; the message is skipped",
      );
    this.#defectTold = true;
  }

  #acknowledge(held: readonly HeldPacket[]): void {
    this.#counts.acknowledged += held.length;
    this.#window.acknowledged(held.length);
    this.#link.acknowledge(held);
  }
}
