// The monitored items of one subscription: which node stands behind which handle, what failed and why, what is tried again.
import type { EpochMicros } from "../../../core/point.ts";
import type { Quality, Reading } from "../../../core/source.ts";
import type { Item, Unresolved } from "../nodes/items.ts";
import type { Link } from "../session/link.ts";
import type { SubscriptionRecord } from "../session/resumption.ts";
import { BatchSize } from "../session/services.ts";
import {
  createItems,
  deleteItems,
  type Entry,
  type ItemCalling,
  keyOf,
  modifyItems,
  type Numbered,
  type Parameters,
  stillThere,
} from "./item-calls.ts";
import type { Subscription } from "./subscription.ts";

export interface MonitoringOptions {
  readonly link: Link;
  readonly subscription: Pick<Subscription, "id" | "items" | "nextHandle">;
  /** Items in one call; 0: no limit is declared. */
  readonly limit: number;
  /** Values to keep of an item that is sampled every `everyMs`; 0: whenever it changes. */
  readonly queueSize: (everyMs: number) => number;
  /** Writes down what the subscription has, and which handles are taken. */
  readonly save: (state: Pick<SubscriptionRecord, "items" | "nextHandle">) => Promise<void>;
}

/** An address that gives no data now. */
export interface MonitoringFailure extends Unresolved {
  readonly captures: Item["captures"];
  /** The node that the server would not monitor; undefined: there is none to ask for. */
  readonly item?: Item;
}

/** Refusals to monitor what can be read all the same. */
const tooMany = "BadTooManyMonitoredItems";
const notMonitored = [tooMany, "BadMonitoringModeInvalid", "BadNotSupported", "BadServiceUnsupported"];

/** Refusals of a dead band or trigger by a server that monitors the node all the same. */
const notFiltered = [
  "BadMonitoredItemFilterUnsupported",
  "BadMonitoredItemFilterInvalid",
  "BadFilterNotAllowed",
  "BadDeadbandFilterInvalid",
];

export interface ValueStatus {
  readonly value: number;
  readonly name: string;
}

/** What a server says of a value whose node it has deleted, without flags: BadNodeIdInvalid, BadNodeIdUnknown. */
const nodeDeleted = [0x80_33, 0x80_34];

/** Keeps the items of a subscription. */
export class Monitoring {
  readonly #options: MonitoringOptions;
  readonly #calling: ItemCalling;
  readonly #items = new Map<number, Item>();
  /** Items that the server is being asked for: their first values may be quicker than its answer. */
  readonly #coming = new Map<number, Item>();
  readonly #entries = new Map<number, Entry>();
  /** Items that were monitored all the time since the connection before. */
  readonly kept = new Set<Item>();
  /** Items that the server lets be read, but does not monitor. */
  polled: Item[] = [];
  /** Those of them for which there was no room: there may be some again. */
  readonly #crowdedOut = new Set<Item>();
  readonly failures: MonitoringFailure[] = [];
  /** Handles of items whose node the server has deleted, and the status that said so. */
  readonly #deleted = new Map<number, string>();
  #nextHandle: number;
  /** Items that the server samples more slowly than asked. */
  slowed = 0;
  /** Items whose dead band or trigger the server refuses: every change of them comes. */
  unfiltered = 0;

  constructor(options: MonitoringOptions) {
    this.#options = options;
    const { link, subscription, limit } = options;
    this.#calling = { link, subscriptionId: subscription.id, batch: new BatchSize(limit, 1_000) };
    this.#nextHandle = options.subscription.nextHandle;
  }

  item(handle: number): Item | undefined {
    return this.#items.get(handle) ?? this.#coming.get(handle);
  }

  get items(): readonly Item[] {
    return [...this.#items.values()];
  }

  /** Items of which the server keeps one value alone: it does not tell of what it threw away. */
  get unqueued(): ReadonlySet<Item> {
    const handles = [...this.#entries.values()].filter(([, , , size]) => size === 1);
    return new Set(handles.flatMap(([handle]) => this.#items.get(handle) ?? []));
  }

  /** Values that the server keeps of an item; 0: nobody knows. */
  queueOf(handle: number): number {
    return this.#entries.get(handle)?.[3] ?? 0;
  }

  /** How many of `polled` there was no room for. */
  get crowdedOut(): number {
    return this.#crowdedOut.size;
  }

  /**
   * Monitors the items: those that a subscription taken up has already, as far as the server knows of them, stay as they
   * are, what it has beyond them goes. What the server refuses becomes a failure; it stops nothing. Rejects with `SOURCE_*` when the server cannot be asked.
   */
  async begin(items: readonly Item[], signal: AbortSignal): Promise<void> {
    const { subscription } = this.#options;
    const { items: before } = subscription;
    const there = await stillThere(
      this.#calling,
      before.map(([, id]) => id),
      signal,
    );
    const had = Map.groupBy(
      before.filter((_, i) => there[i]),
      ([, , key]) => key,
    );
    const create: Item[] = [];
    for (const item of items) {
      const entry = had.get(this.#key(item))?.shift();
      if (entry) {
        this.#keep(item, entry);
        this.kept.add(item);
      } else create.push(item);
    }
    const over = [...had.values()].flat().map(([, id]) => id);
    await deleteItems(this.#calling, over, signal);
    await this.add(create, signal);
  }

  /** Monitors more items. Gives the failures among them. */
  async add(items: readonly Item[], signal: AbortSignal): Promise<MonitoringFailure[]> {
    if (items.length === 0) return [];
    const numbered = items.map((item) => [this.#nextHandle++, item] as const);
    // Before the server learns of them: were they forgotten, another node would get the same.
    await this.#save();
    for (const [handle, item] of numbered) this.#coming.set(handle, item);
    const queueSize: Parameters["queueSize"] = ({ every }) => this.#options.queueSize(every);
    const results = await createItems(this.#calling, numbered, { queueSize, filtered: true }, signal);
    const refused = numbered.filter((_, i) => notFiltered.includes(results[i]?.statusCode.name ?? ""));
    const unfiltered = await createItems(this.#calling, refused, { queueSize, filtered: false }, signal);
    const second = new Map(unfiltered.map((result, i) => [refused[i]?.[0], result]));
    const failed: MonitoringFailure[] = [];
    const created: Created[] = [];
    for (const [i, [handle, item]] of numbered.entries()) {
      const result = second.get(handle) ?? results[i];
      if (result?.statusCode.isGoodish()) {
        const { monitoredItemId, revisedSamplingInterval: sampledMs, revisedQueueSize } = result;
        created.push({ handle, item, monitoredItemId, sampledMs, revisedQueueSize, filtered: !second.has(handle) });
      } else if (result && notMonitored.includes(result.statusCode.name)) {
        this.polled.push(item);
        if (result.statusCode.name === tooMany) this.#crowdedOut.add(item);
      } else {
        const reason = `${result?.statusCode.name}: ${result?.statusCode.description ?? ""}`;
        failed.push({ tag: item.tag, captures: item.captures, address: item.address, reason, item });
      }
    }
    await this.#lengthen(created, signal);
    for (const { handle, item, monitoredItemId, sampledMs, revisedQueueSize, filtered } of created) {
      if (!filtered) this.unfiltered++;
      if (sampledMs > item.every) this.slowed++;
      this.#keep(item, [handle, monitoredItemId, this.#key(item), revisedQueueSize]);
    }
    for (const [handle] of numbered) this.#coming.delete(handle);
    this.failures.push(...failed);
    if (this.#items.size > 0) await this.#save();
    return failed;
  }

  /** Takes the status of a value. */
  arrived(handle: number, { value, name }: ValueStatus): void {
    if (nodeDeleted.includes(value >>> 16)) this.#deleted.set(handle, name);
    else if (this.#deleted.size > 0) this.#deleted.delete(handle);
  }

  /**
   * Takes the failures out, to try them again. Items of deleted nodes are among them and no longer monitored: most servers give
   * them nothing more, also when the node is there again.
   */
  async takeFailures(signal: AbortSignal): Promise<MonitoringFailure[]> {
    const ids: number[] = [];
    for (const [handle, reason] of this.#deleted) {
      const [item, entry] = [this.#items.get(handle), this.#entries.get(handle)];
      if (!item || !entry) continue;
      ids.push(entry[1]);
      this.#items.delete(handle);
      this.#entries.delete(handle);
      this.failures.push({ tag: item.tag, captures: item.captures, address: item.address, reason, item });
    }
    this.#deleted.clear();
    await deleteItems(this.#calling, ids, signal);
    return this.failures.splice(0);
  }

  /** Takes the items out that are polled for want of room, to try them again. */
  takeCrowdedOut(): Item[] {
    const taken = [...this.#crowdedOut];
    this.polled = this.polled.filter((item) => !this.#crowdedOut.has(item));
    this.#crowdedOut.clear();
    return taken;
  }

  /** What the server samples more often than asked needs a longer queue. */
  async #lengthen(created: readonly Created[], signal: AbortSignal): Promise<void> {
    const { queueSize } = this.#options;
    const short = created.filter(
      ({ item, sampledMs, revisedQueueSize: size }) =>
        sampledMs >= 0 && sampledMs < item.every && size === queueSize(item.every) && size < queueSize(sampledMs),
    );
    for (const filtered of [true, false]) {
      const some = short.filter((each) => each.filtered === filtered);
      const wanted = new Map(some.map(({ item, sampledMs }) => [item, queueSize(sampledMs)]));
      const numbered = some.map(({ monitoredItemId, handle, item }) => [monitoredItemId, handle, item] as const);
      const parameters = { queueSize: (item: Item) => wanted.get(item) ?? 1, filtered };
      const sizes = await modifyItems(this.#calling, numbered, parameters, signal);
      for (const [i, each] of some.entries()) each.revisedQueueSize = sizes[i] ?? each.revisedQueueSize;
    }
  }

  #save(): Promise<void> {
    return this.#options.save({ items: [...this.#entries.values()], nextHandle: this.#nextHandle });
  }

  #keep(item: Item, entry: Entry): void {
    this.#items.set(entry[0], item);
    this.#entries.set(entry[0], entry);
  }

  #key(item: Item): string {
    return keyOf(item, this.#options.queueSize(item.every));
  }
}

/** An item that the server monitors now. */
interface Created {
  readonly handle: Numbered[0];
  readonly item: Item;
  readonly monitoredItemId: number;
  /** The revised sampling interval; 0: whenever it changes. */
  readonly sampledMs: number;
  revisedQueueSize: number;
  /** With its dead band and trigger. */
  readonly filtered: boolean;
}

/** A failure as a reading: there is no value, and why. */
export function failureReading(
  { tag, captures, address, reason, item }: MonitoringFailure,
  time: EpochMicros,
): Reading {
  const quality: Quality = "bad";
  const failed = {
    tag,
    captures,
    address,
    value: undefined,
    time,
    clock: "agent",
    quality,
    reason,
    historical: false,
  } as const;
  // Without an item the address is the pattern, of which nothing was found.
  return item ? failed : { ...failed, wholeTag: true };
}
