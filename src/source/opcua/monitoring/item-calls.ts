// Service calls for monitored items in batches.
import type { Item } from "../nodes/items.ts";
import type { Link } from "../session/link.ts";
import type { SubscriptionRecord } from "../session/resumption.ts";
import { attributes, type BatchSize, inBatches } from "../session/services.ts";
import { orRefused } from "../stack/failure.ts";

/** Client handle, server's id, key, queue size on the server, parts of the node that it is monitored for. */
export type Entry = SubscriptionRecord["items"][number];

export interface ItemCalling {
  readonly link: Link;
  readonly subscriptionId: number;
  readonly batch: BatchSize;
  /** Queue size for a sampling interval; 0 means sampling on each change. */
  readonly queueSize: (everyMs: number) => number;
}

type Numbered = readonly [handle: number, item: Item];

interface Created {
  readonly handle: number;
  readonly item: Item;
  readonly id: number;
  /** Revised sampling interval; 0: on each change. */
  readonly sampledMs: number;
  /** Whether the server applies dead band and trigger. */
  readonly filtered: boolean;
  size: number;
}

/** Statuses of a server that refuses only the dead band or trigger, and can monitor the node without them. */
const notFiltered = [
  "BadMonitoredItemFilterUnsupported",
  "BadMonitoredItemFilterInvalid",
  "BadFilterNotAllowed",
  "BadDeadbandFilterInvalid",
];

/** Creates items. Omits refused dead bands and triggers, and lengthens queues where the server samples faster. */
export async function createItems(calling: ItemCalling, items: readonly Numbered[], signal: AbortSignal) {
  const results = await create(calling, items, true, signal);
  const again = items.filter((_, i) => notFiltered.includes(results[i]?.statusCode.name ?? ""));
  const second = await create(calling, again, false, signal);
  const unfiltered = new Map(second.map((result, i) => [again[i]?.[0], result]));
  const created: Created[] = [];
  const refused: (readonly [handle: number, { readonly name: string; readonly description: string }])[] = [];
  for (const [i, [handle, item]] of items.entries()) {
    const result = unfiltered.get(handle) ?? results[i];
    if (result?.statusCode.isGoodish()) {
      const { monitoredItemId: id, revisedSamplingInterval: sampledMs, revisedQueueSize: size } = result;
      created.push({ handle, item, id, sampledMs, size, filtered: !unfiltered.has(handle) });
    } else if (result) refused.push([handle, result.statusCode]);
  }
  await lengthen(calling, created, signal);
  return { created, refused };
}

function create(calling: ItemCalling, items: readonly Numbered[], filtered: boolean, signal: AbortSignal) {
  const { link, subscriptionId, batch, queueSize } = calling;
  const { MonitoringMode, TimestampsToReturn } = link.ua;
  return inBatches(items, batch, async (part) => {
    const itemsToCreate = part.map(([handle, item]) => ({
      itemToMonitor: { nodeId: item.nodeId, attributeId: attributes.value },
      monitoringMode: MonitoringMode.Reporting,
      requestedParameters: requested(link, { handle, item, filtered }, queueSize(item.every)),
    }));
    const request = { subscriptionId, timestampsToReturn: TimestampsToReturn.Both, itemsToCreate };
    return (await link.call("CreateMonitoredItems", request, signal)).results ?? [];
  });
}

/** Lengthens the queues of items that the server samples faster than requested. Keeps the old size if refused. */
async function lengthen(calling: ItemCalling, created: readonly Created[], signal: AbortSignal): Promise<void> {
  const { link, subscriptionId, batch, queueSize } = calling;
  const short = created.filter(
    ({ item: { every }, sampledMs, size }) =>
      sampledMs >= 0 && sampledMs < every && size === queueSize(every) && size < queueSize(sampledMs),
  );
  const modifying = inBatches(short, batch, async (part) => {
    const itemsToModify = part.map((each) => ({
      monitoredItemId: each.id,
      requestedParameters: requested(link, each, queueSize(each.sampledMs)),
    }));
    const request = { subscriptionId, timestampsToReturn: link.ua.TimestampsToReturn.Both, itemsToModify };
    return (await link.call("ModifyMonitoredItems", request, signal)).results ?? [];
  });
  const results = (await orRefused(modifying, signal)) ?? [];
  for (const [i, { statusCode, revisedQueueSize }] of results.entries())
    if (short[i] && statusCode.isGoodish()) short[i].size = revisedQueueSize;
}

/** Whether the server still has each item. If it refuses the call, it is assumed to have all. */
export async function stillThere(
  { link, subscriptionId, batch }: ItemCalling,
  entries: readonly Entry[],
  signal: AbortSignal,
): Promise<boolean[]> {
  const monitoringMode = link.ua.MonitoringMode.Reporting;
  const looking = inBatches(entries, batch, async (part) => {
    const request = { subscriptionId, monitoringMode, monitoredItemIds: part.map(([, id]) => id) };
    return (await link.call("SetMonitoringMode", request, signal)).results ?? [];
  });
  const results = await orRefused(looking, signal);
  return entries.map((_, i) => results?.[i]?.name !== "BadMonitoredItemIdInvalid");
}

/** An item that the server does not delete stays: its values are ignored. Rejects if the connection fails. */
export async function deleteItems(
  { link, subscriptionId, batch }: ItemCalling,
  entries: readonly Entry[],
  signal: AbortSignal,
): Promise<void> {
  const deleting = inBatches(entries, batch, async (part) => {
    const request = { subscriptionId, monitoredItemIds: part.map(([, id]) => id) };
    return (await link.call("DeleteMonitoredItems", request, signal)).results ?? [];
  });
  await orRefused(deleting, signal);
}

function requested(
  { ua }: Link,
  { handle: clientHandle, item, filtered }: Pick<Created, "handle" | "item" | "filtered">,
  queueSize: number,
) {
  const { every: samplingInterval, deadband, trigger } = item;
  const parameters = { clientHandle, samplingInterval, queueSize, discardOldest: true };
  if (!filtered || (!deadband && trigger !== "timestamp")) return parameters;
  const { None, Percent, Absolute } = ua.DeadbandType;
  const { StatusValue, StatusValueTimestamp } = ua.DataChangeTrigger;
  const filter = new ua.DataChangeFilter({
    trigger: trigger === "timestamp" ? StatusValueTimestamp : StatusValue,
    deadbandType: deadband === undefined ? None : deadband.kind === "percent" ? Percent : Absolute,
    deadbandValue: deadband?.value ?? 0,
  });
  return { ...parameters, filter };
}
