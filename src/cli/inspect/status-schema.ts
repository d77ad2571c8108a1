// What `tagferry status` reads of the answer of `/api/status`. Another version of the agent may say more.
import { z } from "zod";
import { epochMicros } from "../../core/point.ts";

const micros = z.number().transform(epochMicros);
const trouble = { error: z.string().optional(), remedy: z.string().optional() };

export const answeredStatus = z.object({
  time: micros,
  overall: z.object({ text: z.string() }).optional(),
  agent: z.object({ name: z.string(), version: z.string(), uptimeMs: z.number() }),
  sources: z.array(
    z.object({
      name: z.string(),
      type: z.string(),
      url: z.string().optional(),
      state: z.string(),
      since: micros,
      tags: z.number(),
      readingsPerSecond: z.number(),
      details: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
      ...trouble,
    }),
  ),
  tags: z.array(
    z.object({
      source: z.string(),
      input: z.string(),
      address: z.string(),
      quality: z.string().optional(),
      reason: z.string().optional(),
    }),
  ),
  buffer: z.object({
    bytes: z.number(),
    segments: z.number(),
    unsettledPoints: z.number(),
    oldest: micros.optional(),
    maxBytes: z.number(),
  }),
  upload: z.object({
    state: z.string(),
    since: micros,
    url: z.string(),
    integration: z.string(),
    lagMs: z.number().optional(),
    /** An agent of another version may not have it. */
    backlog: z.object({ trend: z.string(), text: z.string() }).optional(),
    requests: z.number(),
    points: z.number(),
    refusedPoints: z.number(),
    budgetShare: z.number(),
    bytesPerRequest: z.number().optional(),
    signals: z
      .object({
        known: z.number(),
        saved: z.number(),
        checkedAt: micros.optional(),
        lost: z.number().optional(),
        changed: z.number().optional(),
        unconfigured: z.number().optional(),
        published: z.number().optional(),
      })
      .optional(),
    ...trouble,
  }),
  gaps: z.object({ open: z.number(), day: z.number(), dayLost: z.number() }).optional(),
  warnings: z.array(z.object({ level: z.string(), message: z.string(), remedy: z.string().optional() })),
});
export type AnsweredStatus = z.output<typeof answeredStatus>;
