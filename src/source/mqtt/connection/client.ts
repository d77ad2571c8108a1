// One connection through the `mqtt` library. `packet-reader.ts` takes the messages out before the library, which would
// acknowledge them by itself. This module later writes many acknowledgements at once to the stream of the messages. They
// are lost with that stream, as they must be. Packet identifiers are invalid on another connection, and the broker
// delivers again.
//
// The library answers the rest of the exchange of a QoS 2 message (PUBREL, PUBCOMP) itself.
import type { Writable } from "node:stream";
import { connect, type IClientOptions, type MqttClient, type StreamBuilder } from "mqtt";
import { AgentError, reasonOf } from "../../../core/errors.ts";
import {
  type Attempt,
  type ConnectFailure,
  type ConnectionLoss,
  explainFailure,
  explainLoss,
  type FailureRecord,
} from "./failure.ts";
import {
  exactlyOnce,
  type HeldPacket,
  type Message,
  type PacketReader,
  type PacketSinks,
  packetReader,
} from "./packet-reader.ts";
import { grantedCodes } from "./reason-code.ts";

/** Receives messages in the order of their arrival. */
export interface MessageHandler {
  /** Called before the first message. `resumed`: the broker has kept the session. */
  connected?(resumed: boolean): void;
  /** False: reading from the socket stops until `BrokerConnection.resume` is called. */
  receive(message: Message): boolean;
}

/** What a handler may do with the connection of its messages. */
export interface BrokerConnection {
  /** Writes the acknowledgements in this order. No effect after the connection is lost. */
  acknowledge(held: readonly HeldPacket[]): void;
  /** Sends a message with QoS 0. No effect after the connection is lost. */
  publish(topic: string, payload: Buffer): void;
  /** Continues reading after `receive` returned false. */
  resume(): void;
}

export interface SubscribeOptions {
  readonly qos: 0 | 1 | 2;
  /** MQTT 5: when the broker sends retained messages: always (0), for a new subscription (1) or never (2). */
  readonly retainHandling: 0 | 1 | 2;
  /** MQTT 5: marks the messages that the broker sends for these filters. */
  readonly identifier?: number | undefined;
}

/** Called for an established connection. The result is called if it is lost, and returns the error to report. */
export type OnEstablished = (attempt: Attempt) => (loss: ConnectionLoss) => AgentError;

export interface Connected<Handler> {
  readonly connection: MqttConnection;
  readonly handler: Handler;
}

/**
 * Connects once. Skips payloads of more than `maxPayload` bytes. `attach` returns the handler, which may be called
 * before this resolves, since a resumed session delivers at once. Broker and network failures are results; rejects with
 * `signal.reason` only.
 */
export async function connectOnce<Handler extends MessageHandler>(
  attempt: Attempt,
  { maxPayload, ...options }: IClientOptions & { readonly maxPayload: number },
  attach: (link: BrokerConnection) => Handler,
  signal: AbortSignal,
  onEstablished?: OnEstablished,
): Promise<Connected<Handler> | ConnectFailure> {
  signal.throwIfAborted();
  const client = connect({ ...options, ...ownTerms });
  const record: FailureRecord = {};
  const { protocolVersion } = attempt;
  const resume = readMessages(client, { maxPayload, protocolVersion }, (message) => handler.receive(message));
  const handler = attach({
    acknowledge(held) {
      if (client.connected && held.length > 0) client.stream.write(encodeAcknowledgements(held));
    },
    publish(topic, payload) {
      if (client.connected) client.publish(topic, payload, { qos: 0 });
    },
    resume,
  });
  const lost = Promise.withResolvers<AgentError>();
  const result = Promise.withResolvers<Connected<Handler> | ConnectFailure>();

  client.on("error", (error) => {
    record.error ??= error;
    // The parser loses synchronisation after a packet that it cannot read.
    client.stream.destroy();
  });
  client.on("disconnect", ({ reasonCode }) => void (record.disconnectReason ??= reasonCode ?? 0));
  // The library emits `connect` only after messages that arrive together with CONNACK.
  client.on("packetreceive", (packet) => {
    if (packet.cmd === "connack") handler.connected?.(packet.sessionPresent);
  });
  let onLost: ((loss: ConnectionLoss) => AgentError) | undefined;
  client.on("connect", ({ sessionPresent }) => {
    onLost = onEstablished?.(attempt);
    result.resolve({ connection: mqttConnection(client, sessionPresent, lost.promise), handler });
  });
  client.on("close", () => {
    const loss = explainLoss(attempt, record);
    lost.resolve(onLost && !client.disconnecting ? onLost(loss) : loss.error);
    result.resolve(explainFailure(attempt, record));
  });
  const abort = () => {
    result.reject(signal.reason);
    client.end(true);
  };
  signal.addEventListener("abort", abort, { once: true });
  try {
    client.connect();
    // The library does not report errors without a code, such as those of WebSockets.
    client.stream.on("error", (error: Error) => void (record.error ??= error));
    return await result.promise;
  } catch (error) {
    signal.throwIfAborted();
    // An unreadable key or certificate throws before a socket exists.
    if (error instanceof Error) record.error ??= error;
    return explainFailure(attempt, record);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Settings of the library that override all others. */
const ownTerms = {
  manualConnect: true,
  reconnectPeriod: 0,
  resubscribe: false,
  // The default formats every packet, including passwords, if DEBUG is set.
  log: () => {},
  // The cache has 65,536 buffers for two-byte numbers (7 MB), which are rarely needed here.
  writeCache: false,
} as const satisfies IClientOptions;

/** A connection with a successful CONNACK. Disposal sends DISCONNECT; a persistent session remains at the broker. */
export type MqttConnection = ReturnType<typeof mqttConnection>;

function mqttConnection(client: MqttClient, sessionPresent: boolean, lost: Promise<AgentError>) {
  let hasReceived = false;
  const { protocolVersion: version } = client.options;
  const protocolVersion: 3 | 4 | 5 = version === 5 || version === 3 ? version : 4;
  const limits: Readonly<Record<string, unknown>> = { ...client.serverProperties };
  const lostFirst = lost.then((error) => Promise.reject<never>(error));
  lostFirst.catch(() => {});
  client.stream.on("data", () => void (hasReceived = true));

  return {
    /** Resolves with the reason when the connection is lost. Never rejects. */
    lost,
    protocolVersion,
    sessionPresent,
    /** Keep-alive in milliseconds, as set by the broker. */
    keepaliveMs: client.keepalive * 1_000,
    /** Properties of the broker from CONNACK (MQTT 5). */
    limits,
    /** Resolves with the broker's code for each filter: 0 to 2 granted, from 128 refused. Rejects on connection loss. */
    subscribe(filters: readonly string[], options: SubscribeOptions): Promise<readonly number[]> {
      return Promise.race([subscribe(client, filters, options), lostFirst]);
    },
    /** Resolves when the broker has answered. Rejects if the connection is lost. */
    async unsubscribe(filters: readonly string[]): Promise<void> {
      await Promise.race([client.unsubscribeAsync([...filters]), lostFirst]);
    },
    /** Sends PINGREQ without expecting an early answer. For times when reading is paused or much data is in transit. */
    stayAlive(): void {
      if (!client.connected) return;
      client.sendPing();
      // The answer is queued behind unread data, and its absence must not count as a timeout.
      client.reschedulePing(true);
    },
    /** Whether any data arrived since the last call. */
    received(): boolean {
      const received = hasReceived;
      hasReceived = false;
      return received;
    },
    async [Symbol.asyncDispose](): Promise<void> {
      if (!client.connected) return;
      client.end(false);
      const timer = setTimeout(() => client.stream.destroy(), farewellMs);
      await lost;
      clearTimeout(timer);
    },
  };
}

/** How long the broker may take to close the connection after DISCONNECT, in milliseconds. */
const farewellMs = 1_000;

async function subscribe(
  client: MqttClient,
  filters: readonly string[],
  { qos, retainHandling, identifier }: SubscribeOptions,
): Promise<readonly number[]> {
  try {
    // `rap` false: the retain flag marks messages that the broker stored before, as in MQTT 3.1.1.
    const granted = await client.subscribeAsync([...filters], {
      qos,
      rap: false,
      rh: retainHandling,
      ...(identifier !== undefined && { properties: { subscriptionIdentifier: identifier } }),
    });
    return granted.map((subscription) => subscription.qos);
  } catch (error) {
    // The library throws for a single refusal. The error contains the packet with all codes.
    const codes = grantedCodes(error);
    if (codes?.length === filters.length) return codes;
    const text = reasonOf(error);
    throw new AgentError("SOURCE_PROTOCOL", `the broker's answer to a subscription is invalid: ${text}`, {
      cause: error,
    });
  }
}

/**
 * Reads all input of `client` with a `packetReader`. Call it before `client.connect()`. Returns its `resume`. An invalid
 * packet ends the connection: `client.stream` emits the error.
 *
 * The library pipes its stream into a Writable that parses. A stream in between would cost a copy and an event loop
 * turn per chunk. Therefore the reader runs in the `_write` of that Writable.
 */
function readMessages(
  client: MqttClient,
  options: Parameters<typeof packetReader>[0],
  receive: PacketSinks["receive"],
): () => void {
  const open: StreamBuilder = client["streamBuilder"];
  let reader: PacketReader | undefined;
  client["streamBuilder"] = ((of) => {
    const stream = open(of);
    const pipe = stream.pipe.bind(stream);
    stream.pipe = (destination, pipeOptions) => {
      const parser = destination as unknown as Writable; // the library's types declare no methods of a destination
      const parse = parser._write.bind(parser);
      const own = packetReader(options, {
        receive,
        pass: (part, done) => parse(part, "binary", done),
        fail: (error) => stream.destroy(error),
      });
      reader = own;
      parser._write = (chunk: Buffer, _encoding, done) => own.write(chunk, done);
      return pipe(destination, pipeOptions);
    };
    return stream;
  }) satisfies StreamBuilder;
  return () => reader?.resume();
}

/** Acknowledgements of `held`, in that order. Without reason codes, all MQTT versions share the format. */
function encodeAcknowledgements(held: readonly HeldPacket[]): Buffer {
  const bytes = Buffer.allocUnsafe(held.length * 4);
  let at = 0;
  for (const packet of held) {
    bytes[at++] = packet >= exactlyOnce ? 0x50 : 0x40;
    bytes[at++] = 2;
    bytes[at++] = (packet >> 8) & 0xff;
    bytes[at++] = packet & 0xff;
  }
  return bytes;
}
