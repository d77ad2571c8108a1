// What is kept of a connection so that the next one takes up its session and subscription, also after the process died:
// the server has kept what was not acknowledged. Without the file nothing breaks, the next connection starts afresh.
import { readFile, rm } from "node:fs/promises";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../../lib/state-file.ts";

const session = z.object({
  /** NodeIds in text. */
  id: z.string(),
  token: z.string(),
  name: z.string(),
  timeoutMs: z.number(),
  /** Base64; the next activation is signed with it. */
  nonce: z.string(),
  /** Base64; what a password is encrypted with. */
  certificate: z.string(),
  /** Logins that the server named with the session, where no endpoint of it lists them. */
  logins: z
    .array(z.object({ policyId: z.string().nullable(), tokenType: z.int(), securityPolicyUri: z.string().nullable() }))
    .readonly()
    .default([]),
});
const subscription = z.object({
  id: z.int(),
  /** Which tags it is for: the key of their group. */
  group: z.string(),
  publishingMs: z.number(),
  keepAliveCount: z.number(),
  lifetimeCount: z.number(),
  /** When the server started, in its words: after a restart the number may be another client's. */
  started: z.string(),
  namespaces: z.array(z.string()),
  /** Handles from here on were never used. A used handle that is no longer known may belong to another node. */
  nextHandle: z.int(),
  /** What is monitored: client handle, server's number, node and parameters, values that the server keeps of it. */
  items: z.array(z.tuple([z.int(), z.int(), z.string(), z.int().optional()])),
  /** What may be missing from before it began is written down: it can be gone on with as if nothing were. */
  begun: z.boolean().default(false),
});
const record = z.object({
  version: z.literal(2),
  /** Process that uses the session now, and when it began: another one may have its number after a restart of the machine. */
  pid: z.int(),
  began: z.string().optional(),
  /** Digest of whom we are connected to, how and as whom. */
  connection: z.string(),
  session: session.optional(),
  subscriptions: z.array(subscription).default([]),
  /** Attempts to resume the session without an answer since the last success. */
  attempts: z.int().default(0),
});

export type SessionRecord = z.output<typeof session>;
export type SubscriptionRecord = z.output<typeof subscription>;
type Fields = z.output<typeof record>;

/** The record of one source. Nothing is remembered while another living process owns it: a probe beside a running agent. */
export class Resumption {
  /** Another living process owns the record. */
  readonly guest: boolean;
  readonly #path: string;
  readonly #log: Logger;
  #fields: Fields;

  private constructor(path: string, guest: boolean, log: Logger, fields: Fields) {
    this.#path = path;
    this.guest = guest;
    this.#log = log;
    this.#fields = fields;
  }

  /** Reads the record. One of another `connection` is void. Never rejects: what cannot be read is as good as none. */
  static async open(path: string, connection: string, log: Logger): Promise<Resumption> {
    const start = { version: 2 as const, attempts: 0, subscriptions: [] };
    const owner = { pid: process.pid, began: await beginningOf(process.pid) };
    const fresh: Fields = { ...start, ...owner, connection };
    const stored = await readStateFile(path, record);
    if (stored && stored.pid !== process.pid && (await lives(stored))) return new Resumption(path, true, log, fresh);
    return new Resumption(path, false, log, stored?.connection === connection ? { ...stored, ...owner } : fresh);
  }

  get session(): SessionRecord | undefined {
    return this.#fields.session;
  }

  get attempts(): number {
    return this.#fields.attempts;
  }

  get subscriptions(): readonly SubscriptionRecord[] {
    return this.#fields.subscriptions;
  }

  /** Changes the record on disk. Where that fails there is none afterwards; rejects only when the old one cannot be removed. */
  async remember(change: Partial<Pick<Fields, "session" | "subscriptions" | "attempts">>): Promise<void> {
    this.#fields = { ...this.#fields, ...change };
    if (this.guest) return;
    try {
      await writeStateFile(this.#path, this.#fields);
    } catch (error) {
      await rm(this.#path, { force: true });
      this.#log.warn({ err: error }, "the session cannot be remembered; an interruption may lose values");
    }
  }
}

async function lives({ pid, began }: Pick<Fields, "pid" | "began">): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EPERM")) return false;
  }
  const now = await beginningOf(pid);
  return began === undefined || now === undefined || now === began;
}

/** When a process began, in the words of the system. Undefined: it does not tell. */
async function beginningOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // Behind the name, in which there may be spaces: the 22nd field of all.
  return text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
}
