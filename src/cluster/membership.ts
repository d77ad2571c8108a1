// The members of the cluster and the operators' orders, as this agent sees them. Each member updates a record at each
// heartbeat. It is alive for others while its record changes, measured with their own monotonic clocks.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { isAgentError } from "../core/errors.ts";
import type { Runtime } from "../core/runtime.ts";
import type { KeyBucket, KeyEntry } from "./jetstream.ts";
import { keyToken } from "./key-token.ts";
import type { Candidate, Orders } from "./placement.ts";
import { partsOf } from "./signal-parts.ts";

const memberRecord = z.object({
  node: z.string(),
  /** Unique for each start of the program. */
  boot: z.string(),
  version: z.string(),
  offers: z.array(z.string()),
  prefers: z.array(z.string()),
  reads: z.array(z.string()),
  forwardLagMs: z.number().optional(),
  backlogPoints: z.number().optional(),
  /** Changes with the published metadata of its signals. Left out: not known yet. */
  signals: z.string().optional(),
});
type MemberRecord = z.output<typeof memberRecord>;

export type MemberReport = Omit<MemberRecord, "node" | "boot">;

export interface Member extends MemberRecord {
  /** How long it has been alive without a break. Undefined: it is not alive. */
  readonly aliveMs: number | undefined;
}

const orderRecord = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("drain"), node: z.string() }),
  z.object({ kind: z.literal("move"), source: z.string(), node: z.string() }),
]);
export type ClusterOrder = z.output<typeof orderRecord>;

const beatMs = 2_000;
/** A member whose record has not changed for this long, three heartbeats, is not alive. */
export const silentMs = 3 * beatMs;

export interface MembershipOptions {
  readonly state: KeyBucket;
  readonly node: string;
  readonly report: () => MemberReport;
}

interface Sighting {
  readonly record: MemberRecord;
  readonly revision: number;
  readonly changedAt: number;
  readonly aliveSince: number;
}

export class Membership {
  readonly #options: MembershipOptions;
  readonly #runtime: Runtime;
  readonly #boot = randomUUID();
  #seen = new Map<string, Sighting>();
  #orders: readonly ClusterOrder[] = [];
  #revision: number | undefined;
  #namesake = false;
  #isKnown = false;

  constructor(options: MembershipOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
  }

  /** Another process with the same `agent.name` is a member too: one of them must be renamed. */
  get hasNamesake(): boolean {
    return this.#namesake;
  }

  /** Whether members and orders have been read since the start. Until then this agent must not take a lease. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** All members with a record, including this agent once it has written its own. */
  get members(): readonly Member[] {
    const now = this.#runtime.clock.monotonic();
    return [...this.#seen.values()].map(({ record, changedAt, aliveSince }) => ({
      ...record,
      aliveMs: now - changedAt < silentMs ? now - aliveSince : undefined,
    }));
  }

  /** The members that are alive, including this agent. */
  get candidates(): readonly Candidate[] {
    const { node, report } = this.#options;
    const own = this.#seen.get(keyToken(node));
    const others = this.members.filter((member) => member.node !== node);
    const aliveMs = own ? this.#runtime.clock.monotonic() - own.aliveSince : 0;
    return [
      { node, ...report(), aliveMs },
      ...others.flatMap((member) => (member.aliveMs === undefined ? [] : [{ ...member, aliveMs: member.aliveMs }])),
    ];
  }

  get orders(): Orders {
    const drained = this.#orders.flatMap((order) => (order.kind === "drain" ? [order.node] : []));
    const moves = this.#orders.flatMap((order) => (order.kind === "move" ? [[order.source, order.node] as const] : []));
    return { drained: new Set(drained), moves: new Map(moves) };
  }

  /** Writes and reads records at each heartbeat until `signal` aborts, then resolves. Retries on server failures. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#beat();
        await this.#look();
      } catch (error) {
        if (!isAgentError(error)) throw error;
      }
      await this.#runtime.clock.sleep(beatMs, signal).catch(() => {});
    }
  }

  async #beat(): Promise<void> {
    const { state, node, report } = this.#options;
    const key = `members.${keyToken(node)}`;
    const value = Buffer.from(JSON.stringify({ node, boot: this.#boot, ...report() }));
    const known = this.#revision;
    this.#revision = known === undefined ? await state.create(key, value) : await state.update(key, value, known);
    if (this.#revision !== undefined) return;
    const entry = await state.get(key);
    if (!entry) return;
    // The record is from an earlier start of this program, or from another one with the same name.
    const isOther = parsed(memberRecord, entry)?.boot !== this.#boot;
    if (known !== undefined && isOther && !this.#namesake) {
      this.#namesake = true;
      this.#runtime.log.error({ node }, "another agent of the cluster has the same agent.name; give each one its own");
    }
    this.#revision = await state.update(key, value, entry.revision);
  }

  async #look(): Promise<void> {
    const { records, orders } = await readMembers(this.#options.state);
    const now = this.#runtime.clock.monotonic();
    const seen = new Map<string, Sighting>();
    for (const { record, revision } of records) {
      const token = keyToken(record.node);
      const last = this.#seen.get(token);
      if (last?.revision === revision) seen.set(token, last);
      else {
        const isNew = !last || last.record.boot !== record.boot || now - last.changedAt >= silentMs;
        seen.set(token, {
          record,
          revision,
          changedAt: now,
          aliveSince: isNew ? now : last.aliveSince,
        });
      }
    }
    this.#seen = seen;
    this.#orders = orders;
    this.#isKnown = true;
  }
}

/** The records of all members, with revisions that ascend at each heartbeat, and the orders in force. */
export async function readMembers(state: KeyBucket) {
  const members = await state.list("members.");
  const orders = await state.list("orders.");
  return {
    records: members.flatMap((entry) => {
      const record = parsed(memberRecord, entry);
      return record ? [{ record, revision: entry.revision }] : [];
    }),
    orders: orders.flatMap((entry) => parsed(orderRecord, entry) ?? []),
  };
}

/** Stores an order. It replaces one of the same kind for the same node or source and is valid until deleted. */
export async function giveOrder(state: KeyBucket, order: ClusterOrder): Promise<void> {
  const value = Buffer.from(JSON.stringify(order));
  for (;;) {
    const entry = await state.get(orderKey(order));
    const revision = entry
      ? await state.update(orderKey(order), value, entry.revision)
      : await state.create(orderKey(order), value);
    if (revision !== undefined) return;
  }
}

export function takeBackOrder(state: KeyBucket, order: ClusterOrder): Promise<boolean> {
  return deleteEntry(state, orderKey(order));
}

/** Removes a member that will not come back. Its points in the stream are still delivered. */
export async function removeMember(state: KeyBucket, node: string): Promise<boolean> {
  for (const { key } of await state.list(partsOf(node))) await deleteEntry(state, key);
  return await deleteEntry(state, `members.${keyToken(node)}`);
}

function orderKey(order: ClusterOrder): string {
  return `orders.${order.kind}.${keyToken(order.kind === "drain" ? order.node : order.source)}`;
}

async function deleteEntry(state: KeyBucket, key: string): Promise<boolean> {
  for (;;) {
    const entry = await state.get(key);
    if (!entry) return false;
    if (await state.delete(key, entry.revision)) return true;
  }
}

/** Undefined: an unknown record, for example of another version. */
function parsed<T>(schema: z.ZodType<T>, { value }: KeyEntry): T | undefined {
  try {
    return schema.safeParse(JSON.parse(Buffer.from(value).toString("utf8"))).data;
  } catch {
    return undefined;
  }
}
