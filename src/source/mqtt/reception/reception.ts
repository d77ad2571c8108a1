// Messages on their way from the socket into the inbox.
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
  /** Name of the source in metrics. */
  readonly source: string;
  readonly tags: readonly MqttTag[];
  /** Bytes. */
  readonly maxPayload: number;
  /** Whether unknown Sparkplug edge nodes are asked to introduce themselves. */
  readonly requestRebirth: boolean;
  /** Messages that the broker may send unacknowledged; left out: it does not say. */
  readonly receiveMaximum?: number;
  /** Names that devices sent on earlier connections. Omitted: none. */
  readonly names?: NameTables;
  /** Called when a device has sent new names. */
  readonly onNames?: () => void;
}

/** Readings of one delivery at most, as `Source.deliveries` asks. */
const maxReadings = 10_000;
/**
 * Readings that came together and show a broker with more to send: the socket, and so the broker, waits for them to be
 * stored, acknowledged or not. One sync for so many costs little.
 */
const crowd = 256;
/**
 * Topics whose routes are remembered at least: more than the 100,000 inputs of a large site. With fewer, topics that come
 * round in turn would each be forgotten before they come again, and looked up anew with every message.
 */
const rememberedTopics = 131_072;

/** Receives the messages of one connection and gives them out as deliveries. */
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
  /** Time of arrival of the messages that are being read; undefined between turns of the event loop. */
  #arrival: EpochMicros | undefined;
  /** Messages of this turn that are to be acknowledged. */
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
    // Messages of one chunk are read in one turn of the event loop and share a time, which packs well.
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

  /** Resolves when for the first time nothing more is read before something is taken. */
  get firstStall(): Promise<void> {
    return this.#firstStall.promise;
  }

  /** Since when the socket is not read because the inbox is full, in milliseconds. Undefined: it is read. */
  get stalledMs(): number | undefined {
    return this.#stalledSince === undefined ? undefined : this.#runtime.clock.monotonic() - this.#stalledSince;
  }

  /** What the status shows: messages that something was wrong with, edge nodes and how many have still to introduce themselves. */
  get details(): Readonly<Record<string, string | number>> {
    const { nodes, unborn } = this.#sparkplug;
    return { ...(nodes > 0 && { sparkplugNodes: nodes, waitingForBirth: unborn }), ...this.#counts.details };
  }

  /** Topics that came and that no tag wants. */
  get unknown(): readonly UnknownAddress[] {
    return this.#unknown.top();
  }

  /** `taken` is called with the readings of each delivery. */
  onTaken(taken: (readings: readonly Reading[]) => void): void {
    this.#taken = taken;
  }

  /** Adds readings that no message brought. */
  add(readings: readonly Reading[]): void {
    this.#inbox.put(undefined, (batch) => {
      for (const reading of readings) batch.readings.push(reading);
    });
    this.#inbox.settle();
  }

  /** Delivers readings of Sparkplug messages that waited for missing earlier ones until their time was up. */
  releaseOverdue(): void {
    if (!this.#sparkplug.overdue || this.#inbox.full) return;
    const now = this.#runtime.clock.now();
    this.#inbox.put(undefined, (sink) => this.#sparkplug.releaseOverdue(now, sink));
    this.#inbox.settle();
  }

  /** Resolves with what has arrived since the last call, once there is something. Rejects with the error of `fail` or with `signal.reason`. */
  async take(signal: AbortSignal): Promise<Delivery> {
    return this.#delivery(await this.#inbox.take(signal));
  }

  /** Takes no more, and gives out what has arrived until now. */
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

  /** The connection is lost: what has arrived is still given out, then `take` rejects with `error`. */
  fail(error: unknown): void {
    // What waits for messages that cannot come any more.
    this.#inbox.put(undefined, (sink) => this.#sparkplug.releaseOverdue(this.#runtime.clock.now(), sink, 0));
    this.#inbox.fail(error);
  }

  /** Takes no more; what comes is neither read nor acknowledged. */
  close(): void {
    this.#closed = true;
    this.#link.resume();
  }

  #beginTurn(): EpochMicros {
    // Runs when every message of the chunk has been read: the library goes from one to the next by `process.nextTick`.
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

  /** Once: the next message may be the same. */
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
