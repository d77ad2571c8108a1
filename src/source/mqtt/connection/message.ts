// A message on its way from the connection to its reader, and its acknowledgement on the way back.
import type { Reading } from "../../../core/source.ts";

/** A message as it arrived. */
export interface Message {
  readonly topic: string;
  /** Empty if the message was skipped. */
  readonly payload: Buffer;
  /** Bytes of a payload beyond `maxPayload`, which was discarded while it streamed in; left out: `payload` is complete. */
  readonly skippedBytes?: number | undefined;
  readonly retained: boolean;
  /** User properties (MQTT 5). */
  readonly properties?: Readonly<Record<string, unknown>> | undefined;
  /** What to pass to `acknowledge` once it is on disk; undefined for QoS 0. */
  readonly held: HeldPacket | undefined;
}

/** A reading that says why there is no value. */
export function badReading(place: Pick<Reading, "tag" | "captures" | "address" | "time">, reason: string): Reading {
  return { ...place, value: undefined, clock: "agent", quality: "bad", reason, historical: false };
}

/** Bytes of the payload as the broker sent it. */
export function payloadBytes({ payload, skippedBytes }: Pick<Message, "payload" | "skippedBytes">): number {
  return skippedBytes ?? payload.length;
}

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
