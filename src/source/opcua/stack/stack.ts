// Loads the OPC UA stack when the first connection is opened, redirects its log to the agent's, and changes it so that an
// unreadable answer fails only its own request.
import type { BinaryStream } from "node-opcua-binary-stream";
import type { OPCUACertificateManager } from "node-opcua-certificate-manager";
import type * as client from "node-opcua-client";
import type { ClientSessionImpl } from "node-opcua-client/dist/private/client_session_impl.js";
import type { IClientTransportFactory } from "node-opcua-transport";
import { reasonOf } from "../../../core/errors.ts";
import type { Logger } from "../../../core/runtime.ts";
import { DecodedChange, readPlainValue } from "../types/plain-value.ts";
import { skipVariant } from "../types/skip-variant.ts";
import type { Binary } from "../types/structure.ts";
import { Undecoded } from "../types/value.ts";
import type * as parts from "./stack-parts.ts";

export type Ua = typeof client;
export type CertificateStore = OPCUACertificateManager;
/** A session with the fields that are needed to resume it on another connection. */
export type UaSession = ClientSessionImpl;

export type Stack = Readonly<Awaited<ReturnType<typeof loadStack>>>;

/** Loads the stack once; later calls only redirect its log to `log`. By default the stack prints to the console. */
export async function loadStack(log: Logger) {
  loading ??= import("./stack-parts.ts").then((loaded) => {
    skipUndecodableValues(loaded.ua);
    readPlainValues(loaded.ua);
    failSingleRequests(loaded.ua, loaded.BinaryStream);
    return loaded;
  });
  const { ua, OPCUACertificateManager, ClientSessionImpl, defaultClientTransportFactory, ...binary } = await loading;
  const quiet = (...words: unknown[]) => log.debug({ text: words.map(String).join(" ").slice(0, 500) }, "opcua stack");
  ua.setDebugLogger(quiet);
  ua.setWarningLogger(quiet);
  ua.setErrorLogger(quiet);
  return {
    ua,
    CertificateStore: OPCUACertificateManager,
    Session: ClientSessionImpl,
    transports: boundedTransports(defaultClientTransportFactory),
    binary: { Stream: binary.BinaryStream, typeByName: binary.findBuiltInType } satisfies Binary,
  };
}

let loading: Promise<typeof parts> | undefined;

/**
 * From now on a value that the stack cannot decode is `Undecoded`, and the values behind it are decoded. Otherwise the
 * stack would ignore an answer with such a value, or leave out all values of a notification.
 */
function skipUndecodableValues({ Variant: { prototype }, DataType, VariantArrayType }: Ua): void {
  const decode: unknown = Reflect.get(prototype, "decode");
  if (typeof decode !== "function") throw new TypeError("a Variant can be decoded");
  prototype.decode = function (stream) {
    const start = stream.length;
    try {
      Reflect.apply(decode, this, [stream]);
    } catch (error) {
      stream.length = start;
      skipVariant(stream);
      const value = new Undecoded(`the value cannot be decoded: ${reasonOf(error)}`);
      Object.assign(this, { dataType: DataType.Variant, arrayType: VariantArrayType.Scalar, value });
    }
  };
}

/** Decodes plain values in notifications as `PlainValue` from now on. The stack decodes the others. */
function readPlainValues({ DataChangeNotification: { prototype }, MonitoredItemNotification }: Ua): void {
  prototype.decode = function (this: { monitoredItems: unknown; undecoded?: string }, stream) {
    const changes: unknown[] = [];
    this.monitoredItems = changes;
    try {
      const length = stream.readUInt32();
      const count = length === nullArray ? 0 : length;
      stream.checkArrayLength(count);
      while (changes.length < count) {
        const start = stream.length;
        const clientHandle = stream.readUInt32();
        const value = readPlainValue(stream);
        if (value) {
          changes.push(new DecodedChange(clientHandle, value));
          continue;
        }
        stream.length = start;
        const change = new MonitoredItemNotification(null);
        change.decode(stream);
        changes.push(change);
      }
    } catch (error) {
      // The stack ignores an error.
      this.undecoded = reasonOf(error);
      return;
    }
    // Skip the diagnostics, which the agent never requests. The stack continues after them.
    stream.readUInt32();
  };
}

/** The encoded length of a null array. */
const nullArray = 0xffff_ffff;

/** The stack holds a message as chunks, in one piece and decoded: about four times this size in memory. */
export const largestMessageBytes = 32 * 1024 * 1024;
/** The stack's default. */
const largestChunkBytes = 640 * 1024;
/** The largest message fits in chunks of the smallest allowed size (8 KiB, OPC 10000-6, 6.7.2). */
const mostChunks = largestMessageBytes / 8_192;

/**
 * Wraps `factory` so that a received message cannot exceed the limits that the agent sends in its Hello message.
 * The limits in the server's Acknowledge message apply to requests (OPC 10000-6, 7.1.2.4). The stack also applies them
 * to answers. They may be too small for the answers of a small device, or as large as 4 GiB.
 */
function boundedTransports(factory: IClientTransportFactory): IClientTransportFactory {
  return {
    create(settings) {
      const received = { maxMessageSize: largestMessageBytes, maxChunkCount: mostChunks };
      const buffers = { receiveBufferSize: largestChunkBytes, sendBufferSize: largestChunkBytes };
      const transport = factory.create({ ...settings, ...received, ...buffers });
      const limited = transport as unknown as Limited; // missing in the interface
      const setLimits = limited.setLimits.bind(transport);
      limited.setLimits = (acknowledged) => {
        // The stack sends chunks of this size: at most what the server receives.
        acknowledged.sendBufferSize = Math.min(acknowledged.receiveBufferSize || largestChunkBytes, largestChunkBytes);
        setLimits({ ...received, ...buffers, sendBufferSize: acknowledged.sendBufferSize });
      };
      return transport;
    },
  };
}

interface Limits {
  readonly receiveBufferSize: number;
  sendBufferSize: number;
  readonly maxMessageSize: number;
  readonly maxChunkCount: number;
}
interface Limited {
  setLimits: (given: Limits) => void;
}

/** The members of the stack's MessageBuilder that are used; some are missing in its interface. */
interface Builder {
  readonly options: { readonly name?: string };
  readonly maxMessageSize: number;
  readonly maxChunkCount: number;
  readonly channelId: number;
  readonly securityHeader: unknown;
  readonly sequenceHeader: { readonly requestId: number } | null;
  totalMessageSize: number;
  messageChunks: Buffer[];
  feed: (this: Builder, chunk: Buffer) => void;
  on(event: "invalid_message", listener: () => void): unknown;
  emit(event: "message", ...parts: readonly unknown[]): unknown;
  _read_headersEx: (this: Builder, stream: BinaryStream) => boolean | Promise<boolean>;
  _decodeMessageBody: (this: Builder, body: Buffer) => boolean;
}

interface Discarding {
  /** Bytes of the present message that were discarded, since it is too large. */
  bytes: number;
  /** The chunk that is being processed only resets the builder. */
  resetting: boolean;
}

/** A message that goes on beyond this size ends the connection: the server may never end it. */
const mostDiscardedBytes = 256 * 1024 * 1024;
/** A chunk without content (OPC 10000-6, 6.7.2): message type, length, channel. */
const emptyChunk = Buffer.from("MSGF\f\0\0\0\0\0\0\0", "latin1");

/**
 * From now on an answer that is too large, that the server aborts or that cannot be decoded fails its own request at once.
 * The stack would end the connection in the first case, mix up the messages behind the second, and wait for a time-out in
 * the third.
 */
function failSingleRequests(ua: Ua, Stream: typeof BinaryStream): void {
  const prototype = ua.MessageBuilder.prototype as unknown as Builder; // see `Builder`
  const { feed, _read_headersEx: readHeaders, _decodeMessageBody: decodeBody } = prototype;
  const states = new WeakMap<Builder, Discarding>();

  function stateOf(builder: Builder): Discarding {
    const known = states.get(builder);
    if (known) return known;
    const state = { bytes: 0, resetting: false };
    states.set(builder, state);
    builder.on("invalid_message", () => fail(builder, ua.StatusCodes.BadDecodingError));
    return state;
  }

  /** Answers the request to which the present chunk belongs. */
  function fail(builder: Builder, serviceResult: client.StatusCode): void {
    const requestHandle = builder.sequenceHeader?.requestId ?? 0;
    const fault = new ua.ServiceFault({ responseHeader: { requestHandle, serviceResult } });
    try {
      builder.emit("message", fault, "MSG", builder.securityHeader, requestHandle, builder.channelId);
    } catch {
      // The request is no longer waiting.
    }
  }

  /** Releases the chunks of a message that will not be completed. */
  function reset(builder: Builder, state: Discarding): void {
    builder.totalMessageSize = 0;
    builder.messageChunks = [];
    state.resetting = true;
    feed.call(builder, emptyChunk);
    state.resetting = false;
  }

  prototype.feed = function (chunk) {
    const kind = chunk.toString("latin1", 0, 4);
    if (this.options.name !== "client" || !kind.startsWith("MSG")) return feed.call(this, chunk);
    const state = stateOf(this);
    const isTooLarge =
      state.bytes > 0 ||
      this.totalMessageSize + chunk.length > this.maxMessageSize ||
      this.messageChunks.length >= this.maxChunkCount;
    if ((!isTooLarge && kind !== "MSGA") || state.bytes > mostDiscardedBytes) return feed.call(this, chunk);
    if (this.messageChunks.length > 0) reset(this, state);
    state.bytes += chunk.length;
    const stream = new Stream(chunk);
    // Verifies, decrypts and counts the chunk. Reports an error by itself.
    if (this._read_headersEx(stream) !== true || kind === "MSGC") return;
    state.bytes = 0;
    const code = isTooLarge ? undefined : stream.readUInt32();
    const { BadOperationAbandoned, BadResponseTooLarge } = ua.StatusCodes;
    const given = Object.values(ua.StatusCodes).find(({ value }) => value === code);
    fail(this, isTooLarge ? BadResponseTooLarge : (given ?? BadOperationAbandoned));
  };
  prototype._read_headersEx = function (stream) {
    if (!states.get(this)?.resetting) return readHeaders.call(this, stream);
    stream.length = emptyChunk.length;
    Object.assign(this, { messageHeader: { msgType: "MSG", isFinal: "F", length: emptyChunk.length } });
    return true;
  };
  prototype._decodeMessageBody = function (body) {
    return states.get(this)?.resetting || decodeBody.call(this, body);
  };
}
