// One connection through the `mqtt` library, with acknowledgements in our own hands.
//
// The library acknowledges a QoS 1 message when the callback of `handleMessage` is called, and reads on only then: kept
// until the data is on disk it would carry one message per sync. Called with an error it reads on and acknowledges
// nothing. So that is what happens to every message; the acknowledgements are written later, many in one write, to the
// stream that the message came from. They are lost with that stream, as they must be: packet identifiers mean nothing
// on another connection, and the broker delivers again.
//
// A QoS 2 message is passed to the library as one of QoS 1, or it would be acknowledged before it is on disk. The rest
// of its exchange (PUBREL, PUBCOMP) the library answers by itself, since it finds nothing stored under the identifier.
import { connect, type IClientOptions, type IPublishPacket, type MqttClient } from "mqtt";
import { AgentError, reasonOf } from "../../../core/errors.ts";
import { type Attempt, type ConnectFailure, explainFailure, explainLoss, type FailureRecord } from "./failure.ts";
import { encodeAcknowledgements, exactlyOnce, type HeldPacket, type Message } from "./message.ts";
import { filterInput, OversizeFilter } from "./oversize-filter.ts";
import { grantedCodes } from "./reason-code.ts";

/** Takes messages, in the order they arrive. */
export interface MessageHandler {
  /** False: nothing more is read from the socket until `BrokerConnection.resume` is called. */
  receive(message: Message): boolean;
}

/** The way back from a handler to the connection that its messages come from. */
export interface BrokerConnection {
  /** Writes the acknowledgements in this order; without effect when the connection is lost. */
  acknowledge(held: readonly HeldPacket[]): void;
  /** Sends a message with QoS 0; without effect when the connection is lost. */
  publish(topic: string, payload: Buffer): void;
  /** Reads on after `receive` returned false. */
  resume(): void;
}

export interface SubscribeOptions {
  readonly qos: 0 | 1 | 2;
  /** MQTT 5: retained messages are sent always (0), for a new subscription only (1) or never (2). */
  readonly retainHandling: 0 | 1 | 2;
}

export interface Connected<Handler> {
  readonly connection: MqttConnection;
  readonly handler: Handler;
}

/**
 * Connects once. Payloads beyond `maxPayload` bytes are skipped. `attach` gives the handler, which may be called before
 * this resolves: a resumed session delivers at once. What the broker or the network does is the result; rejects with
 * `signal.reason` only.
 */
export async function connectOnce<Handler extends MessageHandler>(
  attempt: Attempt,
  { maxPayload, ...options }: IClientOptions & { readonly maxPayload: number },
  attach: (link: BrokerConnection) => Handler,
  signal: AbortSignal,
): Promise<Connected<Handler> | ConnectFailure> {
  signal.throwIfAborted();
  const client = connect({ ...options, ...ownTerms });
  const record: FailureRecord = {};
  const filter = new OversizeFilter({ maxPayload, protocolVersion: attempt.protocolVersion });
  filterInput(client, filter);
  const handler = attachHandler(client, filter, attach);
  const lost = Promise.withResolvers<AgentError>();
  const result = Promise.withResolvers<Connected<Handler> | ConnectFailure>();

  client.on("error", (error) => {
    record.error ??= error;
    // The parser loses its place in the stream with a packet that it cannot read.
    client.stream.destroy();
  });
  client.on("disconnect", ({ reasonCode }) => void (record.disconnectReason ??= reasonCode ?? 0));
  client.on("connect", ({ sessionPresent }) => {
    result.resolve({ connection: new MqttConnection(client, sessionPresent, lost.promise, record), handler });
  });
  client.on("close", () => {
    lost.resolve(explainLoss(attempt, record));
    result.resolve(explainFailure(attempt, record));
  });
  const abort = () => {
    result.reject(signal.reason);
    client.end(true);
  };
  signal.addEventListener("abort", abort, { once: true });
  try {
    client.connect();
    // Errors without a code, as of WebSockets, the library keeps to itself.
    client.stream.on("error", (error: Error) => void (record.error ??= error));
    return await result.promise;
  } catch (error) {
    signal.throwIfAborted();
    // A key or certificate that cannot be read is thrown before there is a socket.
    if (error instanceof Error) record.error ??= error;
    return explainFailure(attempt, record);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** What the library must leave to us, whatever else is asked of it. */
const ownTerms = {
  manualConnect: true,
  reconnectPeriod: 0,
  resubscribe: false,
  // Would otherwise format every packet, passwords included, for anyone who sets DEBUG.
  log: () => {},
  // 65,536 buffers of two bytes for numbers that we hardly ever write: 7 MB.
  writeCache: false,
} as const satisfies IClientOptions;

/** Leads messages from the library to the handler, and acknowledgements back. */
function attachHandler<Handler extends MessageHandler>(
  client: MqttClient,
  filter: OversizeFilter,
  attach: (link: BrokerConnection) => Handler,
): Handler {
  const qos2 = new Set<number>();
  /** Of the message that the library hands over next. */
  let skippedBytes: number | undefined;
  let stalled: (() => void) | undefined;
  const handler = attach({
    acknowledge(held) {
      if (client.connected && held.length > 0) client.stream.write(encodeAcknowledgements(held));
    },
    publish(topic, payload) {
      if (client.connected) client.publish(topic, payload, { qos: 0 });
    },
    resume() {
      const readOn = stalled;
      stalled = undefined;
      readOn?.();
    },
  });
  const heldPacket = ({ qos, messageId }: IPublishPacket): HeldPacket | undefined => {
    if (qos === 0 || messageId === undefined) return undefined;
    return qos2.size > 0 && qos2.delete(messageId) ? messageId + exactlyOnce : messageId;
  };
  client.on("packetreceive", (packet) => {
    if (packet.cmd !== "publish") return;
    skippedBytes = filter.nextPublish();
    if (packet.qos !== 2) return;
    qos2.add(packet.messageId ?? 0);
    packet.qos = 1;
  });
  client.handleMessage = (packet, done) => {
    const held = heldPacket(packet);
    const readOn = held === undefined ? done : () => done(notYet);
    const { topic, retain } = packet;
    const payload = typeof packet.payload === "string" ? Buffer.from(packet.payload) : packet.payload;
    const properties = packet.properties?.userProperties;
    if (handler.receive({ topic, payload, skippedBytes, retained: retain, properties, held })) readOn();
    else stalled = readOn;
  };
  return handler;
}

/** Tells the library not to acknowledge. It goes no further than that. */
const notYet = new Error("acknowledged when on disk");

/** A connection whose CONNACK was good. Disposing it says DISCONNECT; the session stays at the broker if it is persistent. */
export class MqttConnection implements AsyncDisposable {
  /** Resolves with the reason when the connection is lost. It never rejects, so that no caller has to catch it. */
  readonly lost: Promise<AgentError>;
  readonly protocolVersion: 3 | 4 | 5;
  readonly sessionPresent: boolean;
  /** Milliseconds, as the broker would have it. */
  readonly keepaliveMs: number;
  /** Properties of the broker from CONNACK (MQTT 5). */
  readonly limits: Readonly<Record<string, unknown>>;
  readonly #client: MqttClient;
  readonly #record: FailureRecord;
  readonly #lostFirst: Promise<never>;
  #heard = false;

  constructor(client: MqttClient, sessionPresent: boolean, lost: Promise<AgentError>, record: FailureRecord) {
    const { protocolVersion } = client.options;
    this.#client = client;
    this.#record = record;
    this.lost = lost;
    this.protocolVersion = protocolVersion === 5 || protocolVersion === 3 ? protocolVersion : 4;
    this.sessionPresent = sessionPresent;
    this.keepaliveMs = client.keepalive * 1_000;
    this.limits = { ...client.serverProperties };
    this.#lostFirst = lost.then((error): never => {
      throw error;
    });
    this.#lostFirst.catch(() => {});
    client.stream.on("data", () => void (this.#heard = true));
  }

  /** Resolves with the broker's code for each filter: 0 to 2 granted, from 128 refused. Rejects when the connection is lost. */
  subscribe(filters: readonly string[], options: SubscribeOptions): Promise<readonly number[]> {
    return Promise.race([subscribe(this.#client, filters, options), this.#lostFirst]);
  }

  /** Resolves when the broker has answered. Rejects when the connection is lost. */
  async unsubscribe(filters: readonly string[]): Promise<void> {
    await Promise.race([this.#client.unsubscribeAsync([...filters]), this.#lostFirst]);
  }

  /** Sends PINGREQ and expects no answer to it yet: for while nothing is read, or much else is on its way to us. */
  stayAlive(): void {
    if (!this.#client.connected) return;
    this.#client.sendPing();
    // The answer is behind what is not read now; it must not be missed.
    this.#client.reschedulePing(true);
  }

  /** Once lost: the broker closed the connection and gave no reason, nor did the network. */
  get closedSilently(): boolean {
    return this.#record.error === undefined && this.#record.disconnectReason === undefined;
  }

  /** Whether anything came since the last call. */
  heard(): boolean {
    const heard = this.#heard;
    this.#heard = false;
    return heard;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#client.connected) return;
    this.#client.end(false);
    const timer = setTimeout(() => this.#client.stream.destroy(), farewellMs);
    await this.lost;
    clearTimeout(timer);
  }
}

/** How long a broker may take to close the connection after DISCONNECT, in milliseconds. */
const farewellMs = 1_000;

async function subscribe(
  client: MqttClient,
  filters: readonly string[],
  { qos, retainHandling }: SubscribeOptions,
): Promise<readonly number[]> {
  try {
    // `rap` false: the retain flag then means that the broker kept the message from before, as it does in MQTT 3.1.1.
    const granted = await client.subscribeAsync([...filters], { qos, rap: false, rh: retainHandling });
    return granted.map((subscription) => subscription.qos);
  } catch (error) {
    // One refusal among many is thrown too, with all the codes in the packet that came.
    const codes = grantedCodes(error);
    if (codes?.length === filters.length) return codes;
    const text = reasonOf(error);
    throw new AgentError("SOURCE_PROTOCOL", `the broker's answer to a subscription is invalid: ${text}`, {
      cause: error,
    });
  }
}
