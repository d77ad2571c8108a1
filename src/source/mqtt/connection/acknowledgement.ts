// PUBACK and PUBREC as bytes: many of them are one write to the socket. Pure.

/** A packet that waits for its acknowledgement: the packet identifier, with `exactlyOnce` added for QoS 2. */
export type HeldPacket = number;
/** Added to the identifier of a QoS 2 packet, which is answered by PUBREC instead of PUBACK. */
export const exactlyOnce = 0x1_0000;

/** The acknowledgements of `held`, in that order. Without reason code and properties they are the same in MQTT 3.1, 3.1.1 and 5. */
export function encodeAcknowledgements(held: readonly HeldPacket[]): Buffer {
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
