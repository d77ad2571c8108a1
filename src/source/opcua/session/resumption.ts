// The record that lets the next connection resume session and subscriptions, also after a crash. If it is missing, a
// new session is created.
import { readFile, rm } from "node:fs/promises";
import { z } from "zod";
import { codeOf } from "../../../core/errors.ts";
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
  /** The process that uses the session, and its start time. Another process may have the same pid after a reboot. */
  pid: z.int(),
  began: z.string().optional(),
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

/** The record of one source. Stores nothing while another process owns it, as next to a running agent. */
export type Resumption = Awaited<ReturnType<typeof openResumption>>;

/**
 * Reads the record of this `connection`. Never rejects: an unreadable record counts as missing. With `shared` no other
 * process uses the record, and one of the same `user` with another certificate keeps its subscriptions.
 */
export async function openResumption(
  path: string,
  connection: string,
  log: Logger,
  shared?: { readonly user: string },
) {
  const start = { version: 2 as const, attempts: 0, subscriptions: [] };
  const owner = { pid: process.pid, began: await beginningOf(process.pid), ...shared };
  const fresh: Fields = { ...start, ...owner, connection };
  const stored = await readStateFile(path, record);
  const guest = stored !== undefined && !shared && stored.pid !== process.pid && (await lives(stored));
  const isSameUser = shared !== undefined && stored?.user === shared.user;
  const { subscriptions } = (isSameUser && stored) || fresh;
  const own = stored?.connection === connection ? { ...stored, ...owner } : { ...fresh, subscriptions };
  let fields: Fields = guest ? fresh : own;

  return {
    /** Whether another living process owns the record. */
    guest,
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
      if (guest) return;
      try {
        await writeStateFile(path, fields);
      } catch (error) {
        await rm(path, { force: true });
        log.warn({ err: error }, "the session cannot be remembered; an interruption may lose values");
      }
    },
  };
}

async function lives({ pid, began }: Pick<Fields, "pid" | "began">): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (codeOf(error) !== "EPERM") return false;
  }
  const now = await beginningOf(pid);
  return began === undefined || now === undefined || now === began;
}

/** Start time of a process in clock ticks, as text. Undefined if the system does not provide it. */
async function beginningOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // Field 22 of the line. Counting starts behind the process name, which may contain spaces.
  return text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
}
