// Persists the first message of each subscription that is not on disk, to detect missing messages after a crash.
import { statSync } from "node:fs";
import { z } from "zod";
import type { DriverConfig } from "../../../core/driver.ts";
import type { Logger } from "../../../core/runtime.ts";
import { readStateFile } from "../../../lib/files/state-file.ts";
import { inPlaceFile } from "../session/state-files.ts";
import { after, behind } from "./missing-messages.ts";

/** Identifies a subscription: a restarted server assigns the same numbers again. */
export interface SubscriptionKey {
  readonly id: number;
  readonly started: string;
}

const content = z.object({
  version: z.literal(1),
  /** The agent that wrote the file, and since which takeover from another one. */
  agent: z.string().optional(),
  takeover: z.number().optional(),
  next: z.record(z.string(), z.int()),
  /** Keys of `next` that another agent has written, see `Positions.lags`. */
  lagging: z.array(z.string()).default([]),
});
type Reader = Pick<DriverConfig<z.ZodObject, z.ZodObject>, "agent" | "takeover">;
/** The content is padded to this length, or that of longer content before it, so that one write replaces it. */
const leastBytes = 4_096;

/** The file is not synced. After a power cut it may be outdated, and stored messages count as missing. */
export type Positions = Awaited<ReturnType<typeof openPositions>>;

/** `reader`: who reads the source now. Never rejects: an unreadable file counts as missing. */
export async function openPositions(path: string, log: Logger, reader: Reader = { agent: "" }) {
  const { agent, takeover } = reader;
  const stored = await readStateFile(path, content);
  const next = new Map(Object.entries(stored?.next ?? {}));
  const isOwn =
    stored?.agent === undefined || (stored.agent === agent && (takeover === undefined || stored.takeover === takeover));
  const lagging = new Set(isOwn ? stored?.lagging : next.keys());
  /** Longest content so far. */
  let length = Math.max(leastBytes, statSync(path, { throwIfNoEntry: false })?.size ?? 0);
  let failed = false;
  const text = () => {
    const state = { version: 1, agent, takeover, next: Object.fromEntries(next), lagging: [...lagging] };
    const bytes = Buffer.from(JSON.stringify(state).padEnd(length));
    length = bytes.length;
    return bytes;
  };
  const file = inPlaceFile(path, text);

  async function write(): Promise<void> {
    try {
      await file.write();
      failed = false;
    } catch (error) {
      if (!failed) log.warn({ err: error }, "cannot persist acknowledged sequence numbers");
      failed = true;
    }
  }

  return {
    /** Number of the first message that is not on disk. Undefined if unknown. */
    next: (subscription: SubscriptionKey): number | undefined => next.get(keyOf(subscription)),
    /**
     * Whether another agent has read since `next` was written, which is then possibly outdated: a killed reader has
     * acknowledged messages that are on its own disk after it last handed over its files, or before it did. False once
     * this agent has stored a message.
     */
    lags: (subscription: SubscriptionKey): boolean => lagging.has(keyOf(subscription)),
    /** Adds the fresh subscriptions and removes all but these and the kept ones. Resolves once written. */
    begin(fresh: readonly SubscriptionKey[], kept: readonly SubscriptionKey[]): Promise<void> {
      const going = new Set(kept.map(keyOf));
      for (const key of next.keys()) if (!going.has(key) && next.delete(key)) lagging.delete(key);
      for (const subscription of fresh) next.set(keyOf(subscription), 1);
      return write();
    },
    /**
     * Records that all messages up to this one are on disk. Resolves once written, or after logging a write error.
     * Acknowledge only then.
     */
    async reached(subscription: SubscriptionKey, sequenceNumber: number): Promise<void> {
      const key = keyOf(subscription);
      const before = next.get(key);
      const following = after(sequenceNumber);
      if (before !== undefined && !behind(before, following)) return;
      lagging.delete(key);
      next.set(key, following);
      await write();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      await file[Symbol.asyncDispose]();
    },
  };
}

function keyOf({ id, started }: SubscriptionKey): string {
  return `${id} ${started}`;
}
