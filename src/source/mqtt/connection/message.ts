// A message on its way from the connection to its reader.
import type { HeldPacket } from "./acknowledgement.ts";

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

/** Bytes of the payload as the broker sent it. */
export function payloadBytes({ payload, skippedBytes }: Pick<Message, "payload" | "skippedBytes">): number {
  return skippedBytes ?? payload.length;
}
