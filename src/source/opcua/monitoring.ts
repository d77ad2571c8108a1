// The monitored items of one subscription: which node stands behind which handle, what failed and why, what is tried again.

import type { EpochMicros } from "../../core/point.ts";
import type { Quality, Reading } from "../../core/source.ts";
import type { Item, Unresolved } from "./items.ts";
import type { Link } from "./link.ts";
import type { Deadband } from "./options.ts";
import type { SubscriptionRecord } from "./resumption.ts";
import { BatchSize, inBatches } from "./services.ts";
import type { Ua } from "./stack.ts";
import type { Subscription } from "./subscription.ts";

export interface MonitoringOptions {
  readonly ua: Ua;
  readonly link: Link;
  readonly subscription: Pick<Subscription, "id" | "items" | "nextHandle">;
  /** Items in one call; 0: no limit is declared. */
  readonly limit: number;
  readonly queueSize: (everyMs: number) => number;
  /** Writes down what the subscription has, and which handles are taken. */
  readonly save: (state: Pick<SubscriptionRecord, "items" | "nextHandle">) => Promise<void>;
}

/** An address that gives no data now. */
export interface Failure extends Unresolved {
  readonly captures: Item["captures"];
  /** The node that the server would not monitor; undefined: there is none to ask for. */
  readonly item?: Item;
}

/** Refusals to monitor what can be read all the same. */
const notMonitored = [
  "BadTooManyMonitoredItems",
  "BadMonitoringModeInvalid",
  "BadNotSupported",
  "BadServiceUnsupported",
];

/** Refusals of a dead band by a server that monitors the node all the same. */
const notFiltered = [
  "BadMonitoredItemFilterUnsupported",
  "BadMonitoredItemFilterInvalid",
  "BadFilterNotAllowed",
  "BadDeadbandFilterInvalid",
];

type Entry = SubscriptionRecord["items"][number];

/** Keeps the items of a subscription. */
export class Monitoring {
  readonly #options: MonitoringOptions;
  readonly #batch: BatchSize;
  readonly #items = new Map<number, Item>();
  readonly #entries = new Map<number, Entry>();
  readonly #polled: Item[] = [];
  #failures: Failure[] = [];
  #nextHandle: number;
  #slowed = 0;
  #unfiltered = 0;

  constructor(options: MonitoringOptions) {
    this.#options = options;
    this.#batch = new BatchSize(options.limit, 1_000);
    this.#nextHandle = options.subscription.nextHandle;
  }

  item(handle: number): Item | undefined {
    return this.#items.get(handle);
  }

  get items(): readonly Item[] {
    return [...this.#items.values()];
  }

  /** Items that the server lets be read, but does not monitor. */
  get polled(): readonly Item[] {
    return this.#polled;
  }

  get failures(): readonly Failure[] {
    return this.#failures;
  }

  /** Items that the server samples more slowly than asked. */
  get slowed(): number {
    return this.#slowed;
  }

  /** Items whose dead band the server refuses: every change of them comes. */
  get unfiltered(): number {
    return this.#unfiltered;
  }

  /**
   * Monitors the items: those that a subscription taken up has already stay as they are, what it has beyond them goes.
   * What the server refuses becomes a failure; it stops nothing. Rejects with `SOURCE_*` when the server cannot be asked.
   */
  async begin(items: readonly Item[], signal: AbortSignal): Promise<void> {
    const { subscription } = this.#options;
    const had = entriesByKey(subscription.items);
    const create: Item[] = [];
    for (const item of items) {
      const entry = had.get(this.#key(item))?.shift();
      if (entry) this.#keep(item, entry);
      else create.push(item);
    }
    await this.#remove([...had.values()].flat(), signal);
    await this.add(create, signal);
  }

  /** Monitors more items. Gives the failures among them. */
  async add(items: readonly Item[], signal: AbortSignal): Promise<Failure[]> {
    if (items.length === 0) return [];
    const { subscription } = this.#options;
    const numbered = items.map((item) => [this.#nextHandle++, item] as const);
    // Before the server learns of them: were they forgotten, another node would get the same.
    await this.#save();
    const results = await this.#create(subscription.id, numbered, true, signal);
    const refused = numbered.filter((_, i) => notFiltered.includes(results[i]?.statusCode.name ?? ""));
    const second = new Map(
      (await this.#create(subscription.id, refused, false, signal)).map((result, i) => [refused[i]?.[0], result]),
    );
    const failed: Failure[] = [];
    for (const [i, [handle, item]] of numbered.entries()) {
      const result = second.get(handle) ?? results[i];
      if (result?.statusCode.isGoodish()) {
        if (second.has(handle)) this.#unfiltered++;
        if (result.revisedSamplingInterval > item.every) this.#slowed++;
        this.#keep(item, [handle, result.monitoredItemId, this.#key(item)]);
      } else if (result && notMonitored.includes(result.statusCode.name)) this.#polled.push(item);
      else {
        const reason = `${result?.statusCode.name}: ${result?.statusCode.description ?? ""}`;
        failed.push({ tag: item.tag, captures: item.captures, address: item.address, reason, item });
      }
    }
    this.#failures.push(...failed);
    if (this.#items.size > 0) await this.#save();
    return failed;
  }

  /** Takes the failures out, to try them again. */
  takeFailures(): Failure[] {
    return this.#failures.splice(0);
  }

  /** Asks for items by their handles, in batches; with their dead bands, or without. */
  #create(subscriptionId: number, items: readonly (readonly [number, Item])[], filtered: boolean, signal: AbortSignal) {
    const { ua, link, queueSize } = this.#options;
    return inBatches(items, this.#batch, async (part) => {
      const request = new ua.CreateMonitoredItemsRequest({
        subscriptionId,
        timestampsToReturn: ua.TimestampsToReturn.Both,
        itemsToCreate: part.map(([clientHandle, { nodeId, every, deadband }]) => ({
          itemToMonitor: { nodeId, attributeId: ua.AttributeIds.Value },
          monitoringMode: ua.MonitoringMode.Reporting,
          requestedParameters: {
            clientHandle,
            samplingInterval: every,
            queueSize: queueSize(every),
            discardOldest: true,
            ...(filtered && deadband && { filter: dataChangeFilter(ua, deadband) }),
          },
        })),
      });
      return (await link.call(request, ua.CreateMonitoredItemsResponse, signal)).results ?? [];
    });
  }

  #save(): Promise<void> {
    return this.#options.save({ items: [...this.#entries.values()], nextHandle: this.#nextHandle });
  }

  #keep(item: Item, entry: Entry): void {
    this.#items.set(entry[0], item);
    this.#entries.set(entry[0], entry);
  }

  async #remove(entries: readonly Entry[], signal: AbortSignal): Promise<void> {
    const { ua, link, subscription } = this.#options;
    await inBatches(entries, this.#batch, async (part) => {
      const monitoredItemIds = part.map(([, id]) => id);
      const request = new ua.DeleteMonitoredItemsRequest({ subscriptionId: subscription.id, monitoredItemIds });
      return (await link.call(request, ua.DeleteMonitoredItemsResponse, signal)).results ?? [];
    });
  }

  #key({ nodeId, every, deadband }: Item): string {
    const band = deadband ? `${deadband.kind} ${deadband.value}` : "";
    return `${nodeId.toString()}\n${every} ${this.#options.queueSize(every)} ${band}`;
  }
}

function dataChangeFilter(ua: Ua, { kind, value }: Deadband) {
  return new ua.DataChangeFilter({
    trigger: ua.DataChangeTrigger.StatusValue,
    deadbandType: kind === "percent" ? ua.DeadbandType.Percent : ua.DeadbandType.Absolute,
    deadbandValue: value,
  });
}

/** Node of an item in the record, as text. */
export function nodeOf([, , key]: Entry): string {
  return key.split("\n")[0] ?? "";
}

function entriesByKey(entries: readonly Entry[]): Map<string, Entry[]> {
  return Map.groupBy(entries, ([, , key]) => key);
}

/** A failure as a reading: there is no value, and why. */
export function failureReading({ tag, captures, address, reason }: Failure, time: EpochMicros): Reading {
  const quality: Quality = "bad";
  return { tag, captures, address, value: undefined, time, clock: "agent", quality, reason, historical: false };
}
