// The status as an agent of any version answers it, as far as `tagferry status` shows it.
import { z } from "zod";
import { epochMicros } from "../../core/point.ts";

const micros = z.number().transform(epochMicros);
const problem = { error: z.string().optional(), remedy: z.string().optional() };

/** The parts of `/api/status` that are used. Other versions of the agent may send more. */
export const answeredStatus = z.object({
  time: micros,
  overall: z.object({ text: z.string() }).optional(),
  agent: z.object({
    name: z.string(),
    version: z.string(),
    uptimeMs: z.number(),
    config: z.object({ checksum: z.string(), loadedAt: micros }).optional(),
  }),
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
      ...problem,
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
    /** Left out by some versions of the agent. */
    backlog: z.object({ text: z.string() }).optional(),
    requests: z.number(),
    points: z.number(),
    refusedPoints: z.number(),
    budgetShare: z.number(),
    bytesPerRequest: z.number().default(0),
    intervalMs: z.number().default(1_000),
    traffic: z
      .object({ sentBytes: z.number(), receivedBytes: z.number(), bytesPerMonth: z.number().optional() })
      .optional(),
    signals: z
      .object({
        known: z.number(),
        saved: z.number(),
        checkedAt: micros.optional(),
        lost: z.number().default(0),
        changed: z.number().default(0),
        unconfigured: z.number().default(0),
        published: z.number().optional(),
      })
      .optional(),
    ...problem,
  }),
  cluster: z
    .object({
      connected: z.boolean(),
      server: z.string().optional(),
      reason: z.string().optional(),
      delivers: z.string().optional(),
      members: z.number(),
      forwardLagMs: z.number(),
      forwardPaused: z.string().optional(),
      hasQuorum: z.boolean().default(true),
      agents: z
        .array(
          z.object({
            node: z.string(),
            version: z.string(),
            reads: z.array(z.string()),
            aliveMs: z.number().optional(),
            forwardLagMs: z.number().optional(),
          }),
        )
        .default([]),
      stream: z
        .object({
          messages: z.number(),
          bytes: z.number(),
          maxBytes: z.number(),
          oldestMs: z.number(),
          replicas: z.number(),
          replicasInPlace: z.number(),
        })
        .optional(),
    })
    .optional(),
  gaps: z.object({ open: z.number(), day: z.number(), dayLost: z.number() }).optional(),
  warnings: z.array(z.object({ level: z.string(), message: z.string(), remedy: z.string().optional() })),
});
export type AnsweredStatus = z.output<typeof answeredStatus>;
