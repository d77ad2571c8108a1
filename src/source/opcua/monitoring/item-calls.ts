// Monitored items: the services for them in batches (create, modify, look whether they are still there, delete), and how they are
// remembered from one connection to the next.
import type { MonitoredItemCreateResult } from "node-opcua-client";
import type { Item } from "../nodes/items.ts";
import { orRefused } from "../session/failure.ts";
import type { Link } from "../session/link.ts";
import type { SubscriptionRecord } from "../session/resumption.ts";
import { attributes, type BatchSize, inBatches } from "../session/services.ts";
import type { Ua } from "../session/stack.ts";

export interface ItemCalling {
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
  { link, subscriptionId, batch }: ItemCalling,
  items: readonly Numbered[],
  parameters: Parameters,
  signal: AbortSignal,
): Promise<MonitoredItemCreateResult[]> {
  const { ua } = link;
  return inBatches(items, batch, async (part) => {
    const itemsToCreate = part.map(([handle, item]) => ({
      itemToMonitor: { nodeId: item.nodeId, attributeId: attributes.value },
      monitoringMode: ua.MonitoringMode.Reporting,
      requestedParameters: requested(ua, handle, item, parameters),
    }));
    const request = { subscriptionId, timestampsToReturn: ua.TimestampsToReturn.Both, itemsToCreate };
    return (await link.call("CreateMonitoredItems", request, signal)).results ?? [];
  });
}

/** Gives the revised size of the queue of each; undefined where nothing was changed. Never refused: what was set stays. */
export async function modifyItems(
  { link, subscriptionId, batch }: ItemCalling,
  items: readonly (readonly [monitoredItemId: number, ...Numbered])[],
  parameters: Parameters,
  signal: AbortSignal,
): Promise<(number | undefined)[]> {
  const { ua } = link;
  const modifying = inBatches(items, batch, async (part) => {
    const itemsToModify = part.map(([monitoredItemId, handle, item]) => ({
      monitoredItemId,
      requestedParameters: requested(ua, handle, item, parameters),
    }));
    const request = { subscriptionId, timestampsToReturn: ua.TimestampsToReturn.Both, itemsToModify };
    return (await link.call("ModifyMonitoredItems", request, signal)).results ?? [];
  });
  const results = await orRefused(modifying, signal);
  return items.map((_, i) => (results?.[i]?.statusCode.isGoodish() ? results[i].revisedQueueSize : undefined));
}

/** Whether the server still has each, by its number there. A server that cannot be asked so has them all. */
export async function stillThere(
  { link, subscriptionId, batch }: ItemCalling,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<boolean[]> {
  const monitoringMode = link.ua.MonitoringMode.Reporting;
  const looking = inBatches(ids, batch, async (part) => {
    const request = { subscriptionId, monitoringMode, monitoredItemIds: [...part] };
    return (await link.call("SetMonitoringMode", request, signal)).results ?? [];
  });
  const results = await orRefused(looking, signal);
  return ids.map((_, i) => results?.[i]?.name !== "BadMonitoredItemIdInvalid");
}

export async function deleteItems(
  { link, subscriptionId, batch }: ItemCalling,
  ids: readonly number[],
  signal: AbortSignal,
): Promise<void> {
  await inBatches(ids, batch, async (part) => {
    const request = { subscriptionId, monitoredItemIds: [...part] };
    return (await link.call("DeleteMonitoredItems", request, signal)).results ?? [];
  });
}

function requested(ua: Ua, clientHandle: number, item: Item, { queueSize, filtered }: Parameters) {
  return {
    clientHandle,
    samplingInterval: item.every,
    queueSize: queueSize(item),
    discardOldest: true,
    ...(filtered && (item.deadband || item.trigger === "timestamp") && { filter: dataChangeFilter(ua, item) }),
  };
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
  return [deadband?.kind, deadband?.value, trigger === "timestamp" ? trigger : undefined]
    .filter((part) => part !== undefined)
    .join(" ");
}
