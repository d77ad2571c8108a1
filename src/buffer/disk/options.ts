// The `buffer` section of the configuration: limits on size and age, and delays of the sync to disk.
import { z } from "zod";
import { byteSize, duration } from "../../lib/values/fields.ts";

export const bufferOptions = z.strictObject({
  maxSize: byteSize({ min: 16 * 2 ** 20 })
    .prefault("2GiB")
    .describe("How much the segments may take up on disk. Beyond it `whenFull` decides."),
  maxAge: duration({ min: 60_000 })
    .prefault("30d")
    .describe("Points that could not be delivered for longer than this are dropped and counted."),
  reserveFreeDisk: byteSize()
    .prefault("512MiB")
    .describe(
      "Space on the volume that is left to other programs: below it the buffer drops its oldest points. 0: all is used.",
    ),
  whenFull: z
    .enum(["dropOldest", "block"])
    .default("dropOldest")
    .describe(
      "What a full buffer does. dropOldest: it drops whole segments of the oldest points and counts them. block: it takes no new points, and sources that can wait do.",
    ),
  sync: duration({ max: 60_000 })
    .prefault("250ms")
    .describe(
      "How long points whose source needs no acknowledgement may gather before they are synced to disk. A power cut may lose this much of polled tags.",
    ),
  ackDelay: z
    .union([z.literal("auto"), duration({ max: 1_000 })])
    .default("auto")
    .describe(
      "How long points whose acknowledgement a device waits for may gather at most, so that one sync serves many. auto, the default: up to 50ms for MQTT, and at once when the broker sends no more before it gets acknowledgements; 5ms for others.",
    ),
});

export type BufferOptions = z.output<typeof bufferOptions>;
