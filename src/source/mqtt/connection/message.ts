// A message between connection and reader, and the encoding of its acknowledgement.
import type { Reading } from "../../../core/source.ts";

export interface Message {
  readonly topic: string;
  /** Empty if the message was skipped. */
  readonly payload: Buffer;
  /** Bytes of a payload above `maxPayload`, discarded on arrival. Undefined: `payload` is complete. */
  readonly skippedBytes?: number | undefined;
  readonly retained: boolean;
  /** User properties (MQTT 5). */
  readonly properties?: Readonly<Record<string, unknown>> | undefined;
  /** Argument for `acknowledge` once the message is on disk. Undefined for QoS 0. */
  readonly held: HeldPacket | undefined;
}

export function badReading(place: Pick<Reading, "tag" | "captures" | "address" | "time">, reason: string): Reading {
  return { ...place, value: undefined, clock: "agent", quality: "bad", reason, historical: false };
}

/** Size of the payload as sent by the broker, in bytes. */
export function payloadBytes({ payload, skippedBytes }: Pick<Message, "payload" | "skippedBytes">): number {
  return skippedBytes ?? payload.length;
}

/** A packet with a pending acknowledgement: its packet identifier, plus `exactlyOnce` for QoS 2. */
export type HeldPacket = number;
/** Added to the identifier of a QoS 2 packet, which needs PUBREC instead of PUBACK. */
export const exactlyOnce = 0x1_0000;

/** Acknowledgements of `held`, in that order. Without reason codes, all MQTT versions share the format. */
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
