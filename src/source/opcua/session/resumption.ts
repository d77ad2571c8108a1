// The record that lets the next connection resume session and subscriptions, also after a crash. If it is missing, a
// new session is created.
import { rm } from "node:fs/promises";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";

const session = z.object({
  /** NodeId as text. */
  id: z.string(),
  token: z.string(),
  name: z.string(),
  timeoutMs: z.number(),
  /** Base64. The next activation signs it. */
  nonce: z.string(),
  /** Base64. It encrypts the password. */
  certificate: z.string(),
  /** Logins that the server sent with the session, if its endpoints list none. */
  logins: z
    .array(z.object({ policyId: z.string().nullable(), tokenType: z.int(), securityPolicyUri: z.string().nullable() }))
    .readonly()
    .default([]),
});
const subscription = z.object({
  id: z.int(),
  /** Key of the group of tags that the subscription serves. */
  group: z.string(),
  publishingMs: z.number(),
  keepAliveCount: z.number(),
  lifetimeCount: z.number(),
  /** The server's start time as it reports it. After a restart the id may belong to another client. */
  started: z.string(),
  namespaces: z.array(z.string()),
  /** Handles from here on were never used. A used handle may belong to another node and is not assigned again. */
  nextHandle: z.int(),
  /**
   * Monitored items: client handle, server's id, node and parameters, queue size on the server, and the part of the node
   * that each tag takes; default: one tag that takes the whole value.
   */
  items: z.array(z.tuple([z.int(), z.int(), z.string(), z.int().optional(), z.array(z.string()).optional()])),
  /** Whether gaps from before the subscription are recorded. If so, it can be continued like any other. */
  begun: z.boolean().default(false),
});
const record = z.object({
  version: z.literal(2),
  /** Digest of server, user, security and certificate. */
  connection: z.string(),
  /** Digest of server, user and security. */
  user: z.string().optional(),
  session: session.optional(),
  subscriptions: z.array(subscription).default([]),
  /** Attempts to resume the session without an answer since the last success. */
  attempts: z.int().default(0),
});

export type SessionRecord = z.output<typeof session>;
export type SubscriptionRecord = z.output<typeof subscription>;
type Fields = z.output<typeof record>;
/** Earlier versions require a `pid`, and do not use a record whose process runs. No process has this number. */
const noProcess = 2_147_483_647;

/** The record of one source. */
export type Resumption = Awaited<ReturnType<typeof openResumption>>;

/**
 * Reads the record of this `connection`. Never rejects: an unreadable record counts as missing. With `user`, the
 * record of the same user with another certificate keeps its subscriptions.
 */
export async function openResumption(path: string, connection: string, log: Logger, user?: string) {
  const fresh: Fields = { version: 2, attempts: 0, subscriptions: [], connection };
  const stored = await readStateFile(path, record);
  const isSameUser = user !== undefined && stored?.user === user;
  const { subscriptions } = (isSameUser && stored) || fresh;
  const own = stored?.connection === connection ? stored : { ...fresh, subscriptions };
  let fields: Fields = { ...own, ...(user !== undefined && { user }) };

  return {
    get session(): SessionRecord | undefined {
      return fields.session;
    },
    get attempts(): number {
      return fields.attempts;
    },
    get subscriptions(): readonly SubscriptionRecord[] {
      return fields.subscriptions;
    },
    /** Updates the record on disk, or removes it if writing fails. Rejects only if the old record cannot be removed. */
    async remember(change: Partial<Pick<Fields, "session" | "subscriptions" | "attempts">>): Promise<void> {
      fields = { ...fields, ...change };
      try {
        await writeStateFile(path, { ...fields, pid: noProcess });
      } catch (error) {
        await rm(path, { force: true });
        log.warn({ err: error }, "the session cannot be remembered; an interruption may lose values");
      }
    },
  };
}
