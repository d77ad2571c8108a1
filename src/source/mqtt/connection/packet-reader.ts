// Reads the messages of a connection. The `mqtt` library receives all other packets:
//
//   from the socket   | CONNACK | PUBLISH 20 B | PUBLISH 250 MB .................... | PINGRESP |
//   to the library    | CONNACK |                                                    | PINGRESP |
//   to the handler              | message      |                         skipped 250 MB |
//
// The library would spend three times as long on a message: several objects and an event loop turn each. It buffers a
// packet until it is complete, and acknowledges a message by itself, while here that must wait for the disk.
//
// A payload above `maxPayload` is discarded on arrival. At its end the handler receives the message without the payload,
// so that it keeps its place in the order of acknowledgements.
//
// Memory: at most `maxPayload`, `maxProperties` and the topic (64 KiB) of a PUBLISH are buffered here, and `maxControl`
// bytes of any other packet in the library. A packet that breaks these rules ends the connection.

export interface Message {
  readonly topic: string;
  /** Empty if the message was skipped. */
  readonly payload: Buffer;
  /**
   * Bytes of a payload that was discarded on arrival, since it is above `maxPayload` or the properties above their limit.
   * Undefined: `payload` is complete.
   */
  readonly skippedBytes?: number | undefined;
  readonly retained: boolean;
  /** Argument for `acknowledge` once the message is on disk. Undefined for QoS 0. */
  readonly held: HeldPacket | undefined;
  /** User properties by name. Undefined: none. */
  readonly properties?: Readonly<Record<string, unknown>> | undefined;
  /** Identifiers of the subscriptions for which the broker sent this copy. Undefined: it names none. */
  readonly subscriptions?: readonly number[] | undefined;
}

/** Size of the payload as sent by the broker, in bytes. */
export function payloadBytes({ payload, skippedBytes }: Pick<Message, "payload" | "skippedBytes">): number {
  return skippedBytes ?? payload.length;
}

/** A packet with a pending acknowledgement: its packet identifier, plus `exactlyOnce` for QoS 2. */
export type HeldPacket = number;
/** Added to the identifier of a QoS 2 packet, which needs PUBREC instead of PUBACK. */
export const exactlyOnce = 0x1_0000;

/** Largest remaining length of packets other than PUBLISH, in bytes. A CONNACK with all properties needs a few KiB. */
const maxControl = 256 * 1_024;
/** Largest size of the properties of a PUBLISH (MQTT 5), in bytes. Messages with more are skipped. */
const maxProperties = 64 * 1_024;

/** Why a message was skipped whose payload is not above `maxPayload`. */
export const longProperties = `its properties have more than ${maxProperties} bytes`;
const publishType = 3;
const nothing = Buffer.alloc(0);
const noProperties: MessageProperties = {};

export interface PacketSinks {
  /** Takes a message. False: no further packet is read until `resume`. */
  readonly receive: (message: Message) => boolean;
  /** Takes a packet of another type, or a part of it. Reading goes on after `done`. */
  readonly pass: (part: Buffer, done: () => void) => void;
  /** Called with an invalid or excessive packet, which ends the connection. Nothing more is read. */
  readonly fail: (error: Error) => void;
}

export type PacketReader = ReturnType<typeof packetReader>;

/** Reads one connection. `maxPayload`: bytes; a larger payload is skipped. */
export function packetReader(
  { maxPayload, protocolVersion }: { readonly maxPayload: number; readonly protocolVersion: 3 | 4 | 5 },
  { receive, pass, fail }: PacketSinks,
) {
  let input: Buffer = nothing;
  /** Start of the current packet in `input`, and the position up to which it was read. */
  let at = 0;
  let cursor = 0;
  /** Chunks of an incomplete packet, and the number of bytes that the next step needs. */
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let needed = 0;
  /** A message whose packet has `toDiscard` bytes left. */
  let skipped: Message | undefined;
  let toDiscard = 0;
  /** Bytes left of a packet for the library. */
  let toPass = 0;
  let stalled = false;
  let onRead = () => {};
  let isReading = false;
  let readAgain = false;

  /** Reads on until `input` is used up, reading has stalled, or the library is busy with a packet. */
  function read(): void {
    // The library may call back at once, which must not nest for each packet.
    readAgain = true;
    if (isReading) return;
    isReading = true;
    while (readAgain) {
      readAgain = false;
      let part: Buffer | undefined;
      try {
        part = next();
      } catch (error) {
        fail(error instanceof Error ? error : new Error(String(error)));
        return;
      }
      if (part) pass(part, read);
      else if (!stalled) onRead();
    }
    isReading = false;
  }

  /** Delivers messages up to a packet of another type, and returns what is there of it. Undefined: `input` is used up, or reading has stalled. */
  function next(): Buffer | undefined {
    while (!stalled && at < input.length) {
      if (skipped) {
        const count = Math.min(toDiscard, input.length - at);
        toDiscard -= count;
        at += count;
        if (toDiscard === 0) deliver(skipped);
        continue;
      }
      if (toPass > 0) {
        const part = input.subarray(at, at + toPass);
        at += part.length;
        toPass -= part.length;
        return part;
      }
      const first = input[at] ?? 0;
      cursor = at + 1;
      const length = integer();
      if (length < 0) return wait(input.length + 1);
      const end = cursor + length;
      if (first >> 4 === publishType) {
        const until = end > input.length && length <= maxPayload ? end : readPublish(first, end);
        if (until > input.length) return wait(until);
        continue;
      }
      if (length > maxControl)
        throw new Error(`the broker sent a packet of type ${first >> 4} with ${length} bytes, which no broker needs`);
      toPass = end - at;
    }
    return undefined;
  }

  /**
   * Reads the PUBLISH that ends at `end`. Delivers it, or begins to skip it. Returns the position up to which it needs
   * bytes, at most the length of `input` if it has them.
   *
   * | topic length 2 | topic | packet identifier 2 if QoS > 0 | MQTT 5: length of properties 1-4 | properties | payload |
   */
  function readPublish(first: number, end: number): number {
    const start = cursor + 2;
    const qos = (first >> 1) & 3;
    if (qos === 3) throw new Error("the broker sent a message with the invalid QoS 3");
    if (start > end) throw malformed();
    if (start > input.length) return start;
    const topicEnd = start + input.readUInt16BE(cursor);
    let body = topicEnd + (qos > 0 ? 2 : 0);
    if (body > end) throw malformed();
    if (body > input.length) return body;
    cursor = body;
    if (protocolVersion === 5) {
      const length = integer();
      if (length < 0 && input.length < end) return input.length + 1;
      body = cursor + length;
      if (length < 0 || body > end) throw malformed();
    }
    const isSkipped = end - body > maxPayload || body - cursor > maxProperties;
    if (!isSkipped && end > input.length) return end;
    const { properties, subscriptions } =
      isSkipped || body === cursor ? noProperties : messageProperties(input.subarray(cursor, body));
    const message: Message = {
      topic: input.toString("utf8", start, topicEnd),
      payload: isSkipped ? nothing : input.subarray(body, end),
      skippedBytes: isSkipped ? end - body : undefined,
      retained: (first & 1) === 1,
      properties,
      subscriptions,
      held: qos === 0 ? undefined : input.readUInt16BE(topicEnd) + (qos === 2 ? exactlyOnce : 0),
    };
    if (isSkipped) {
      skipped = message;
      toDiscard = end - at;
      return 0;
    }
    at = end;
    deliver(message);
    return 0;
  }

  function deliver(message: Message): void {
    skipped = undefined;
    stalled = !receive(message);
  }

  /** Keeps the current packet until the bytes up to `end` have arrived. */
  function wait(end: number): undefined {
    // A copy, because a view would retain the whole chunk.
    const rest = Buffer.from(input.subarray(at));
    pending = [rest];
    pendingBytes = rest.length;
    needed = end - at;
    input = nothing;
  }

  /** Reads the variable byte integer at the cursor. Negative: incomplete. Throws if it has more than four bytes. */
  function integer(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 28; factor *= 128) {
      const byte = input[cursor];
      if (byte === undefined) return -1;
      cursor++;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new Error("the broker sent a packet whose length has more than four bytes");
  }

  return {
    /** Reads the packets of `chunk` in their order, then calls `done`. */
    write(chunk: Buffer, done: () => void): void {
      input = chunk;
      at = 0;
      onRead = done;
      if (pendingBytes > 0) {
        pending.push(chunk);
        pendingBytes += chunk.length;
        input = nothing;
        if (pendingBytes >= needed) {
          input = Buffer.concat(pending, pendingBytes);
          pending = [];
          pendingBytes = 0;
        }
      }
      read();
    },
    /** Continues after `receive` returned false. */
    resume(): void {
      if (!stalled) return;
      stalled = false;
      read();
    },
    /** Bytes of an incomplete packet in memory. */
    get heldBytes(): number {
      return pendingBytes;
    },
  };
}

// The properties of a PUBLISH (MQTT 5) that the agent uses.

type MessageProperties = Pick<Message, "properties" | "subscriptions">;

function malformed(): Error {
  return new Error("the broker sent a message whose topic or properties are longer than the message itself");
}

/** Bytes of the properties of a PUBLISH with a fixed size: payload format, message expiry. */
const fixedSizes: Readonly<Record<number, number>> = { 1: 1, 2: 4 };
/** Number of texts and byte strings, each with a length, of the others: content type, response topic, and so on. */
const texts: Readonly<Record<number, number>> = { 3: 1, 8: 1, 9: 1, 38: 2 };
const subscriptionIdentifier = 11;
const userProperty = 38;

/** User properties by name, an array where a name occurs several times, and identifiers. Undefined: none. */
function messageProperties(bytes: Buffer): MessageProperties {
  let found: Map<string, string | string[]> | undefined;
  let subscriptions: number[] | undefined;
  let at = 0;
  const take = (count: number) => {
    at += count;
    if (at > bytes.length) throw malformed();
    return at - count;
  };
  const text = () => {
    const length = bytes.readUInt16BE(take(2));
    const from = take(length);
    return () => bytes.toString("utf8", from, from + length);
  };
  while (at < bytes.length) {
    const kind = bytes[at++] ?? 0;
    const count = texts[kind];
    if (count !== undefined) {
      const [name, value] = Array.from({ length: count }, text);
      if (kind !== userProperty || !name || !value) continue;
      found ??= new Map();
      const before = found.get(name());
      found.set(name(), before === undefined ? value() : [before, value()].flat());
    } else if (kind === subscriptionIdentifier) {
      let [identifier, factor, byte] = [0, 1, 0x80];
      for (; byte >= 0x80; factor *= 128) identifier += ((byte = bytes[take(1)] ?? 0) & 0x7f) * factor;
      (subscriptions ??= []).push(identifier);
    } else if (fixedSizes[kind] !== undefined) take(fixedSizes[kind]);
    // A topic alias among them: the broker may not use one, since CONNECT permits none.
    else throw new Error(`the broker sent a message with the property ${kind}, which it may not have`);
  }
  return { properties: found && Object.fromEntries(found), subscriptions };
}
