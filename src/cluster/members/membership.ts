// The members of the cluster and the operators' orders, as this agent sees them.
//
//   heartbeat   every 2 s to all agents, not stored: it costs the servers no write, and one message for each other member
//   record      in the bucket `state`, written when it changes: it shows the member to others after it has gone
//
// A member is alive for others while they receive its heartbeats, measured with their own monotonic clocks.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { isAgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { type Broadcast, type KeyBucket, keyToken, parsed } from "../connection/jetstream.ts";
import { partsOf } from "../signals/published-signals.ts";
import type { Candidate, Orders } from "./placement.ts";

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
  reachesService: z.boolean().optional(),
  /** Changes with the published metadata of its signals. Left out: not known yet. */
  signals: z.string().optional(),
});
type MemberRecord = z.output<typeof memberRecord>;

/** `namesake`: the boot of the process with the same name that the sender has heard last. `time`: its clock. */
const heartbeatRecord = memberRecord.extend({ namesake: z.string().optional(), time: z.number().optional() });

export type MemberReport = Omit<MemberRecord, "node" | "boot">;

export interface Member extends MemberRecord {
  /** How long it has been alive without a break. Undefined: it is not alive. */
  readonly aliveMs: number | undefined;
}

const orderRecord = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("drain"), node: z.string() }),
  z.object({ kind: z.literal("move"), source: z.string(), node: z.string() }),
]);
type ClusterOrder = z.output<typeof orderRecord>;

const beatMs = 2_000;
/** A member that was not heard for this long, three heartbeats, is not alive. */
export const silentMs = 3 * beatMs;
/** Records of members without heartbeats are read at one in so many heartbeats. */
const recordsEvery = 4;

interface MembershipOptions {
  readonly state: KeyBucket;
  readonly heartbeats: Broadcast;
  readonly node: string;
  readonly report: () => MemberReport;
}

interface Sighting {
  readonly record: MemberRecord;
  /** When it was heard last. */
  readonly changedAt: number;
  readonly aliveSince: number;
}

export class Membership {
  readonly #options: MembershipOptions;
  readonly #runtime: Runtime;
  readonly #boot = randomUUID();
  /** By key. */
  readonly #seen = new Map<string, Sighting>();
  /** Keys of members that were removed. */
  readonly #removed = new Set<string>();
  #orders: readonly ClusterOrder[] = [];
  #revision: number | undefined;
  /** The record in the bucket. Undefined: not written yet. */
  #written: string | undefined;
  /** The boot of the process with the same name that was heard last. It may have ended. */
  #sameName: string | undefined;
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

  /** All members that were heard or have a record, including this agent. */
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
    const own = this.#seen.get(memberKey(node));
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

  /** Sends heartbeats, writes the record and reads orders until `signal` aborts, then resolves. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    const { heartbeats } = this.#options;
    const heartbeat = () => ({ ...this.#record, namesake: this.#sameName, time: clock.now() });
    const repeat = async (call: (round: number) => Promise<void> | void) => {
      for (let round = 0; !signal.aborted; round++) {
        try {
          await call(round);
        } catch (error) {
          if (!isAgentError(error)) throw error;
        }
        await clock.sleep(beatMs, signal).catch(() => {});
      }
    };
    await Promise.all([
      heartbeats.listen((data) => this.#hear(data), signal),
      repeat(() => heartbeats.send(Buffer.from(JSON.stringify(heartbeat())))),
      repeat(async (round) => {
        await this.#write();
        if (!this.#isKnown || round % recordsEvery === 0) await this.#readRecords();
        this.#orders = await readOrders(this.#options.state);
        this.#isKnown = true;
      }),
    ]);
  }

  get #record(): MemberRecord {
    const { node, report } = this.#options;
    return { node, boot: this.#boot, ...report() };
  }

  #hear(data: Uint8Array): void {
    const heartbeat = parsed(heartbeatRecord, data);
    if (!heartbeat) return;
    const { namesake, time: _time, ...record } = heartbeat;
    const { node } = this.#options;
    if (record.node !== node || record.boot === this.#boot) return this.#see(record);
    this.#sameName = record.boot;
    // A suspended server delivers heartbeats of this agent's former process late. That process cannot name this one.
    if (namesake !== this.#boot || this.#namesake) return;
    this.#namesake = true;
    this.#runtime.log.error({ node }, "another agent of the cluster has the same agent.name; give each one its own");
  }

  #see(record: MemberRecord): void {
    const key = memberKey(record.node);
    const now = this.#runtime.clock.monotonic();
    const last = this.#seen.get(key);
    const isNew = !last || last.record.boot !== record.boot || now - last.changedAt >= silentMs;
    this.#seen.set(key, { record, changedAt: now, aliveSince: isNew ? now : last.aliveSince });
    this.#removed.delete(key);
  }

  /** Writes what does not change all the time, if it has changed. */
  async #write(): Promise<void> {
    const { state, node } = this.#options;
    const { forwardLagMs: _lag, backlogPoints: _backlog, reachesService: _reaches, ...lasting } = this.#record;
    const text = JSON.stringify(lasting);
    if (text === this.#written) return;
    const [key, value] = [memberKey(node), Buffer.from(text)];
    // The entry may be from an earlier start, or from a write whose answer was lost.
    const revision = this.#revision ?? (await state.get(key))?.revision;
    this.#revision = revision === undefined ? await state.create(key, value) : await state.update(key, value, revision);
    if (this.#revision !== undefined) this.#written = text;
  }

  /** Reads the records of members that are not heard: they are off, were removed, or have just joined. */
  async #readRecords(): Promise<void> {
    const { state, node } = this.#options;
    const now = this.#runtime.clock.monotonic();
    const isHeard = (key: string) => now - (this.#seen.get(key)?.changedAt ?? Number.NEGATIVE_INFINITY) < silentMs;
    const keys = await state.keys(allMembers);
    for (const key of this.#seen.keys()) if (!keys.includes(key) && !isHeard(key)) this.#seen.delete(key);
    // The servers have lost it.
    if (!keys.includes(memberKey(node))) this.#written = this.#revision = undefined;
    const records = this.#isKnown
      ? await Promise.all(
          keys
            .filter((key) => !isHeard(key) && !this.#removed.has(key))
            .map(async (key) => ({ key, record: parsed(memberRecord, (await state.get(key))?.value) })),
        )
      : (await readMembers(state)).map((record) => ({ key: memberKey(record.node), record }));
    for (const { key, record } of records) {
      if (record && !this.#seen.has(key)) this.#see(record);
      if (record) continue;
      this.#seen.delete(key);
      this.#removed.add(key);
    }
  }
}

const allMembers = "members.";
const memberKey = (node: string) => `${allMembers}${keyToken(node)}`;

/** The node that has sent a heartbeat, and its time. Undefined: it is of another version. */
export function readHeartbeat(
  heartbeat: Uint8Array,
): { readonly node: string; readonly time?: number | undefined } | undefined {
  return parsed(heartbeatRecord, heartbeat);
}

/** The records of all members, also of those that are off. */
export async function readMembers(state: KeyBucket): Promise<readonly MemberRecord[]> {
  const entries = await state.list(allMembers);
  return entries.flatMap(({ value }) => parsed(memberRecord, value) ?? []);
}

/** The orders in force. */
export async function readOrders(state: KeyBucket): Promise<readonly ClusterOrder[]> {
  const entries = await state.list("orders.");
  return entries.flatMap(({ value }) => parsed(orderRecord, value) ?? []);
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
  return await deleteEntry(state, memberKey(node));
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
