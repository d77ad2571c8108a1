// Monitored items: the services for them in batches (create, modify, look whether they are still there, delete), and how they are
// remembered from one connection to the next.
import type { MonitoredItemCreateResult } from "node-opcua-client";
import { isAgentError } from "../../../core/errors.ts";
import type { Item } from "../nodes/items.ts";
import { refusalOf } from "../session/failure.ts";
import type { Link } from "../session/link.ts";
import type { SubscriptionRecord } from "../session/resumption.ts";
import { type BatchSize, inBatches } from "../session/services.ts";
import type { Ua } from "../session/stack.ts";

export interface ItemCalling {
  readonly ua: Ua;
  readonly link: Link;
  readonly subscriptionId: number;
  readonly batch: BatchSize;
}

/** An item and its client handle. */
export type Numbered = readonly [handle: number, item: Item];

export interface Parameters {
  readonly queueSize: (item: Item) => number;
  /** With their dead bands and triggers, or without. */
  readonly filtered: boolean;
}

/** A result for each. */
export function createItems(
  { ua, link, subscriptionId, batch }: ItemCalling,
  items: readonly Numbered[],
  parameters: Parameters,
  signal: AbortSignal,
): Promise<MonitoredItemCreateResult[]> {
  return inBatches(items, batch, async (part) => {
    const request = new ua.CreateMonitoredItemsRequest({
      subscriptionId,
      timestampsToReturn: ua.TimestampsToReturn.Both,
      itemsToCreate: part.map(([handle, item]) => ({
        itemToMonitor: { nodeId: item.nodeId, attributeId: ua.AttributeIds.Value },
        monitoringMode: ua.MonitoringMode.Reporting,
        requestedParameters: requested(ua, handle, item, parameters),
      })),
    });
    return (await link.call(request, ua.CreateMonitoredItemsResponse, signal)).results ?? [];
  });
}

/** Gives the revised size of the queue of each; undefined where nothing was changed. Never refused: what was set stays. */
export async function modifyItems(
  { ua, link, subscriptionId, batch }: ItemCalling,
  items: readonly (readonly [monitoredItemId: number, ...Numbered])[],
  parameters: Parameters,
  signal: AbortSignal,
): Promise<(number | undefined)[]> {
  const results = await unlessRefused(
    inBatches(items, batch, async (part) => {
      const request = new ua.ModifyMonitoredItemsRequest({
        subscriptionId,
        timestampsToReturn: ua.TimestampsToReturn.Both,
        itemsToModify: part.map(([monitoredItemId, handle, item]) => ({
          monitoredItemId,
          requestedParameters: requested(ua, handle, item, parameters),
        })),
      });
      return (await link.call(request, ua.ModifyMonitoredItemsResponse, signal)).results ?? [];
    }),
    signal,
  );
  return items.map((_, i) => (results?.[i]?.statusCode.isGoodish() ? results[i].revisedQueueSize : undefined));
}

/** Whether the server still has each, by its number there. A server that cannot be asked so has them all. */
export async function stillThere(
  { ua, link, subscriptionId, batch }: ItemCalling,
  monitoredItemIds: readonly number[],
  signal: AbortSignal,
): Promise<boolean[]> {
  const results = await unlessRefused(
    inBatches(monitoredItemIds, batch, async (part) => {
      const request = new ua.SetMonitoringModeRequest({
        subscriptionId,
        monitoringMode: ua.MonitoringMode.Reporting,
        monitoredItemIds: [...part],
      });
      return (await link.call(request, ua.SetMonitoringModeResponse, signal)).results ?? [];
    }),
    signal,
  );
  return monitoredItemIds.map((_, i) => results?.[i]?.name !== "BadMonitoredItemIdInvalid");
}

export async function deleteItems(
  { ua, link, subscriptionId, batch }: ItemCalling,
  monitoredItemIds: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  await inBatches(monitoredItemIds, batch, async (part) => {
    const request = new ua.DeleteMonitoredItemsRequest({ subscriptionId, monitoredItemIds: [...part] });
    return (await link.call(request, ua.DeleteMonitoredItemsResponse, signal)).results ?? [];
  });
}

function requested(ua: Ua, clientHandle: number, item: Item, { queueSize, filtered }: Parameters) {
  return {
    clientHandle,
    samplingInterval: item.every,
    queueSize: queueSize(item),
    discardOldest: true,
    ...(filtered && isFiltered(item) && { filter: dataChangeFilter(ua, item) }),
  };
}

function isFiltered({ deadband, trigger }: Item): boolean {
  return deadband !== undefined || trigger === "timestamp";
}

function dataChangeFilter(ua: Ua, { deadband, trigger }: Item) {
  const { None, Percent, Absolute } = ua.DeadbandType;
  const { StatusValue, StatusValueTimestamp } = ua.DataChangeTrigger;
  return new ua.DataChangeFilter({
    trigger: trigger === "timestamp" ? StatusValueTimestamp : StatusValue,
    deadbandType: deadband === undefined ? None : deadband.kind === "percent" ? Percent : Absolute,
    deadbandValue: deadband?.value ?? 0,
  });
}

async function unlessRefused<T>(asking: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    signal.throwIfAborted();
    const answered = refusalOf(error) !== undefined || (isAgentError(error) && error.code === "SOURCE_PROTOCOL");
    if (!answered) throw error;
    return undefined;
  }
}

/** Client handle, the server's number, key, values that the server keeps. */
export type Entry = SubscriptionRecord["items"][number];

/** The same for what is monitored in the same way. */
export function keyOf(item: Item, queueSize: number): string {
  return `${item.nodeId.toString()}\n${item.every} ${queueSize} ${filterOf(item)}`;
}

/** The node of an item in the record, as text. */
export function nodeOf([, , key]: Entry): string {
  return key.split("\n")[0] ?? "";
}

/** The same for items that give the same values, however many of them the server keeps. */
export function likeness(item: Item): string {
  return `${item.nodeId.toString()}\n${item.every} ${filterOf(item)}`;
}

/** As `likeness`, of an item in the record. */
export function likenessOf(entry: Entry): string {
  const [every, , ...filter] = (entry[2].split("\n").at(-1) ?? "").split(" ");
  return `${nodeOf(entry)}\n${every} ${filter.join(" ")}`;
}

function filterOf({ deadband, trigger }: Item): string {
  return [...(deadband ? [deadband.kind, deadband.value] : []), ...(trigger === "timestamp" ? [trigger] : [])].join(
    " ",
  );
}
