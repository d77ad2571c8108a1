// Keeps PUBLISH packets with oversized payloads from the parser, which buffers a packet until it is complete. The
// filter is between the socket and the parser, and reads only fixed headers:
//
//   from the socket   | PUBLISH 20 B | PUBLISH 250 MB ........................ | PINGRESP |
//   to the parser     | PUBLISH 20 B |                             | stand-in  | PINGRESP |
//
// The payload is discarded on arrival. At its end, the parser receives a stand-in with the same type, flags, topic and
// packet identifier, but an empty payload. The message thus keeps its place in the order of acknowledgements, with QoS
// 1 and QoS 2. `nextPublish` returns its size.
//
// Memory: at most `maxPayload`, `maxProperties` and the topic (64 KiB) of a PUBLISH reach the parser, and `maxControl`
// bytes of any other packet. The filter itself buffers at most one topic. A packet that breaks these rules ends the
// connection.
import type { Writable } from "node:stream";
import type { MqttClient, StreamBuilder } from "mqtt";

/** Largest remaining length of packets other than PUBLISH, in bytes. A CONNACK with all properties needs a few KiB. */
const maxControl = 256 * 1_024;
/** Largest size of the properties of a PUBLISH (MQTT 5), in bytes. The filter skips messages with more. */
const maxProperties = 64 * 1_024;

const publishType = 3;

export interface OversizeFilterOptions {
  /** In bytes. A PUBLISH with a larger payload is skipped. */
  readonly maxPayload: number;
  readonly protocolVersion: 3 | 4 | 5;
}

interface StandIn {
  /** Position among all PUBLISH packets of the connection. */
  readonly index: number;
  readonly bytes: number;
}

/** One per connection. */
export class OversizeFilter {
  readonly #maxPayload: number;
  readonly #hasProperties: boolean;
  /** Bytes of a packet without a decision, and the number of bytes that the next decision needs. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #needed = 0;
  /** Remaining bytes of the current packet to pass on or to discard. */
  #toPass = 0;
  #toDiscard = 0;
  /** Replaces the packet once its payload is discarded. Undefined: no packet is being discarded. */
  #standIn: Buffer | undefined;
  #standInBytes = 0;
  /** Numbers of PUBLISH packets that went into the parser and came out of it. */
  #passed = 0;
  #parsed = 0;
  readonly #standIns: StandIn[] = [];

  constructor({ maxPayload, protocolVersion }: OversizeFilterOptions) {
    this.#maxPayload = maxPayload;
    this.#hasProperties = protocolVersion === 5;
  }

  /**
   * The part of `chunk` and earlier chunks that the parser may receive. Throws if a length is invalid or excessive; the
   * caller must then end the connection.
   */
  pass(chunk: Buffer): Buffer {
    let input = chunk;
    if (this.#pendingBytes > 0) {
      this.#pending.push(chunk);
      this.#pendingBytes += chunk.length;
      if (this.#pendingBytes < this.#needed) return nothing;
      input = Buffer.concat(this.#pending, this.#pendingBytes);
      this.#pending = [];
      this.#pendingBytes = 0;
    }
    // Consecutive packets to pass form one part, usually the whole chunk.
    const parts: Buffer[] = [];
    let from = 0;
    let at = 0;
    while (at < input.length) {
      if (this.#standIn) {
        const count = Math.min(this.#toDiscard, input.length - at);
        this.#toDiscard -= count;
        at += count;
        from = at;
        if (this.#toDiscard > 0) break;
        parts.push(this.#standIn);
        this.#standIns.push({ index: this.#passed - 1, bytes: this.#standInBytes });
        this.#standIn = undefined;
      } else if (this.#toPass > 0) {
        const count = Math.min(this.#toPass, input.length - at);
        this.#toPass -= count;
        at += count;
      } else {
        const head = this.#decide(input, at);
        // A packet to pass starts here with its header. A packet to discard loses all bytes after its head.
        if (head > 0 && this.#standIn === undefined) continue;
        if (at > from) parts.push(input.subarray(from, at));
        at += head;
        from = at;
        if (head > 0) continue;
        // A copy, because a view would retain the whole chunk.
        const rest = Buffer.from(input.subarray(at));
        this.#pending = [rest];
        this.#pendingBytes = rest.length;
        return joined(parts);
      }
    }
    if (from === 0 && parts.length === 0) return input;
    if (at > from) parts.push(input.subarray(from, at));
    return joined(parts);
  }

  /** Call for each PUBLISH from the parser. Returns the payload size of a stand-in; undefined for other packets. */
  nextPublish(): number | undefined {
    const index = this.#parsed++;
    return this.#standIns[0]?.index === index ? this.#standIns.shift()?.bytes : undefined;
  }

  /**
   * Decides on the packet that starts at `at`: sets `#toPass`, or `#toDiscard` and `#standIn`. Returns the number of
   * bytes that the decision used. Returns 0 if it needs more bytes, `#needed` in total.
   */
  #decide(input: Buffer, at: number): number {
    const first = input[at] ?? 0;
    const remaining = variableInteger(input, at + 1);
    if (remaining === undefined) return this.#need(input.length - at + 1);
    const headerBytes = 1 + remaining.bytes;
    const length = remaining.value;
    const isPublish = first >> 4 === publishType;
    if (!isPublish && length > maxControl)
      throw new Error(`the broker sent a packet of type ${first >> 4} with ${length} bytes, which no broker needs`);
    if (!isPublish || length <= this.#maxPayload) return this.#passOn(headerBytes, length, isPublish);

    // | topic length 2 | topic | packet identifier 2 if QoS > 0 | MQTT 5: length of properties 1-4 | properties | payload |
    const qos = (first >> 1) & 3;
    const body = at + headerBytes;
    if (input.length < body + 2) return this.#need(headerBytes + 2);
    const identified = 2 + input.readUInt16BE(body) + (qos > 0 ? 2 : 0);
    if (qos === 3 || identified > length) throw malformed();
    let head = identified;
    let properties = 0;
    if (input.length < body + head) return this.#need(headerBytes + head);
    if (this.#hasProperties) {
      const found = variableInteger(input, body + head);
      if (found === undefined) return this.#need(input.length - at + 1);
      head += found.bytes;
      properties = found.value;
    }
    const payload = length - head - properties;
    if (payload < 0) throw malformed();
    if (payload <= this.#maxPayload && properties <= maxProperties) return this.#passOn(headerBytes, length, true);
    this.#passed++;
    this.#toDiscard = length - head;
    this.#standIn = standIn(first, input.subarray(body, body + identified), this.#hasProperties);
    this.#standInBytes = payload;
    return headerBytes + head;
  }

  #passOn(headerBytes: number, length: number, isPublish: boolean): number {
    if (isPublish) this.#passed++;
    this.#toPass = headerBytes + length;
    return headerBytes;
  }

  #need(bytes: number): 0 {
    this.#needed = bytes;
    return 0;
  }
}

const nothing = Buffer.alloc(0);

function joined(parts: readonly Buffer[]): Buffer {
  const [first = nothing] = parts;
  return parts.length <= 1 ? first : Buffer.concat(parts);
}

/** The variable byte integer at `at` in `input`. Undefined: incomplete. Throws if it has more than four bytes. */
function variableInteger(input: Buffer, at: number): { readonly value: number; readonly bytes: number } | undefined {
  let value = 0;
  for (let bytes = 0; bytes < 4; bytes++) {
    const byte = input[at + bytes];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 128 ** bytes;
    if (byte < 0x80) return { value, bytes: bytes + 1 };
  }
  throw new Error("the broker sent a packet whose length has more than four bytes");
}

function malformed(): Error {
  return new Error("the broker sent a message whose topic or properties are longer than the message itself");
}

/** A PUBLISH with the same type, flags, topic and packet identifier, without properties and payload. */
function standIn(first: number, identified: Buffer, hasProperties: boolean): Buffer {
  const length = identified.length + (hasProperties ? 1 : 0);
  const bytes: number[] = [first];
  for (let rest = length; ; rest >>= 7) {
    bytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    if (rest <= 0x7f) break;
  }
  return Buffer.concat([Buffer.from(bytes), identified, Buffer.alloc(hasProperties ? 1 : 0)]);
}

/**
 * Routes all input of `client` through `filter`. Call it before `client.connect()`. An error of the filter ends the
 * connection: `client.stream` emits it.
 *
 * The library pipes its stream into a Writable that parses. A stream in between would cost a copy and an event loop
 * turn per chunk. Therefore the filter runs in the `_write` of that Writable.
 */
export function filterInput(client: MqttClient, filter: OversizeFilter): void {
  const open: StreamBuilder = client["streamBuilder"];
  client["streamBuilder"] = ((of) => {
    const stream = open(of);
    const pipe = stream.pipe.bind(stream);
    stream.pipe = (destination, options) => {
      const parser = destination as unknown as Writable; // the library's types declare no methods of a destination
      const parse = parser._write.bind(parser);
      parser._write = (chunk: Buffer, encoding, done) => {
        let passed: Buffer;
        try {
          passed = filter.pass(chunk);
        } catch (error) {
          // `done` is not called, since the rest of the stream cannot be parsed.
          stream.destroy(error instanceof Error ? error : new Error(String(error)));
          return;
        }
        if (passed.length === 0) done();
        else parse(passed, encoding, done);
      };
      return pipe(destination, options);
    };
    return stream;
  }) satisfies StreamBuilder;
}
