// The properties of a PUBLISH (MQTT 5) that the agent uses.

export interface MessageProperties {
  /** User properties by name. Undefined: none. */
  readonly properties?: Readonly<Record<string, unknown>> | undefined;
  /** Identifiers of the subscriptions for which the broker sent this copy. Undefined: it names none. */
  readonly subscriptions?: readonly number[] | undefined;
}

export function malformed(): Error {
  return new Error("the broker sent a message whose topic or properties are longer than the message itself");
}

/** Bytes of the properties of a PUBLISH with a fixed size: payload format, message expiry. */
const fixedSizes: Readonly<Record<number, number>> = { 1: 1, 2: 4 };
/** Number of texts and byte strings, each with a length, of the others: content type, response topic, and so on. */
const texts: Readonly<Record<number, number>> = { 3: 1, 8: 1, 9: 1, 38: 2 };
const subscriptionIdentifier = 11;
const userProperty = 38;

/** User properties by name, an array where a name occurs several times, and identifiers. Undefined: none. */
export function messageProperties(bytes: Buffer): MessageProperties {
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
