// An answer that is too large, that the server aborts or that cannot be decoded fails its own request at once. The stack
// would end the connection in the first case, mix up the messages behind the second, and wait for a time-out in the third.
import type { BinaryStream } from "node-opcua-binary-stream";
import type * as client from "node-opcua-client";

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

/** Applies to all connections that are opened from now on. */
export function failSingleRequests(ua: typeof client, Stream: typeof BinaryStream): void {
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
