// What a broker says in CONNACK that it does not take (MQTT 5), and what follows from it for subscriptions. Asking all
// the same would not be refused: it ends the connection, and every other tag with it.

export interface BrokerLimits {
  /** Bytes of a packet that we send. */
  readonly maxPacket: number;
  readonly wildcards: boolean;
  readonly shared: boolean;
}

/** `properties` of CONNACK; what is not in it is not limited. */
export function brokerLimits(properties: Readonly<Record<string, unknown>>): BrokerLimits {
  const { maximumPacketSize, wildcardSubscriptionAvailable, sharedSubscriptionAvailable } = properties;
  return {
    maxPacket: typeof maximumPacketSize === "number" ? maximumPacketSize : Number.POSITIVE_INFINITY,
    wildcards: wildcardSubscriptionAvailable !== false,
    shared: sharedSubscriptionAvailable !== false,
  };
}

/** The reason code that the broker would have for this filter; undefined: it may be asked. */
export function refusalOf(filter: string, { maxPacket, wildcards, shared }: BrokerLimits): number | undefined {
  const isShared = filter.startsWith("$share/");
  if (isShared && !shared) return sharedUnsupported;
  if (!wildcards && /[+#]/.test(filter)) return wildcardsUnsupported;
  return packetHead + sizeOf(filter) > maxPacket ? packetTooLarge : undefined;
}

const packetTooLarge = 149;
const sharedUnsupported = 158;
const wildcardsUnsupported = 162;

/** Some cloud brokers take no more than this in one SUBSCRIBE. */
const filtersPerPacket = 8;
/** Bytes of SUBSCRIBE and UNSUBSCRIBE before the first filter: type, length, identifier and length of the properties. */
const packetHead = 1 + 4 + 2 + 1;

/** Filters as they go into packets, in their order; each of them fits into one. */
export function packetsOf(filters: readonly string[], { maxPacket }: Pick<BrokerLimits, "maxPacket">): string[][] {
  const packets: string[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const filter of filters) {
    size += sizeOf(filter);
    const last = packets.at(-1);
    if (last && last.length < filtersPerPacket && size <= maxPacket) last.push(filter);
    else {
      packets.push([filter]);
      size = packetHead + sizeOf(filter);
    }
  }
  return packets;
}

/** Its length in two bytes, itself, its options. */
function sizeOf(filter: string): number {
  return 2 + Buffer.byteLength(filter) + 1;
}
