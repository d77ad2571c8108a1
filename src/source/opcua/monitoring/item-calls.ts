// Service calls for monitored items in batches.
import type { Item } from "../nodes/items.ts";
import type { Link } from "../session/link.ts";
import type { SubscriptionRecord } from "../session/resumption.ts";
import { attributes, BatchSize, inBatches } from "../session/services.ts";
import { orRefused } from "../stack/failure.ts";
import type { Ua } from "../stack/stack.ts";

/** Client handle, server's id, key, queue size on the server, parts of the node that it is monitored for. */
export type Entry = SubscriptionRecord["items"][number];

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

/**
 * The calls for the monitored items of one subscription. `limit`: items per call; 0 if the server declares none.
 * `queueSize`: for a sampling interval; 0 means sampling on each change.
 */
export function itemCalls(link: Link, subscriptionId: number, limit: number, queueSize: (everyMs: number) => number) {
  const { ua } = link;
  const batch = new BatchSize(limit, 1_000);
  const timestampsToReturn = ua.TimestampsToReturn.Both;
  const monitoringMode = ua.MonitoringMode.Reporting;

  function createPart(items: readonly Numbered[], filtered: boolean, signal: AbortSignal) {
    return inBatches(items, batch, async (part) => {
      const itemsToCreate = part.map(([handle, item]) => ({
        itemToMonitor: { nodeId: item.nodeId, attributeId: attributes.value },
        monitoringMode,
        requestedParameters: requested(ua, { handle, item, filtered }, queueSize(item.every)),
      }));
      const request = { subscriptionId, timestampsToReturn, itemsToCreate };
      return (await link.call("CreateMonitoredItems", request, signal)).results ?? [];
    });
  }

  /** Lengthens the queues of items that the server samples faster than requested. Keeps the old size if refused. */
  async function lengthen(created: readonly Created[], signal: AbortSignal): Promise<void> {
    const short = created.filter(
      ({ item: { every }, sampledMs, size }) =>
        sampledMs >= 0 && sampledMs < every && size === queueSize(every) && size < queueSize(sampledMs),
    );
    const modifying = inBatches(short, batch, async (part) => {
      const itemsToModify = part.map((each) => ({
        monitoredItemId: each.id,
        requestedParameters: requested(ua, each, queueSize(each.sampledMs)),
      }));
      const request = { subscriptionId, timestampsToReturn, itemsToModify };
      return (await link.call("ModifyMonitoredItems", request, signal)).results ?? [];
    });
    const results = (await orRefused(modifying, signal)) ?? [];
    for (const [i, { statusCode, revisedQueueSize }] of results.entries())
      if (short[i] && statusCode.isGoodish()) short[i].size = revisedQueueSize;
  }

  return {
    /** Creates items. Omits refused dead bands and triggers, and lengthens queues where the server samples faster. */
    async create(items: readonly Numbered[], signal: AbortSignal) {
      const results = await createPart(items, true, signal);
      const again = items.filter((_, i) => notFiltered.includes(results[i]?.statusCode.name ?? ""));
      const second = await createPart(again, false, signal);
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
      await lengthen(created, signal);
      return { created, refused };
    },
    /** Whether the server still has each item. If it refuses the call, it is assumed to have all. */
    async stillThere(entries: readonly Entry[], signal: AbortSignal): Promise<boolean[]> {
      const looking = inBatches(entries, batch, async (part) => {
        const request = { subscriptionId, monitoringMode, monitoredItemIds: part.map(([, id]) => id) };
        return (await link.call("SetMonitoringMode", request, signal)).results ?? [];
      });
      const results = await orRefused(looking, signal);
      return entries.map((_, i) => results?.[i]?.name !== "BadMonitoredItemIdInvalid");
    },
    /** An item that the server does not delete stays: its values are ignored. Rejects if the connection fails. */
    async remove(entries: readonly Entry[], signal: AbortSignal): Promise<void> {
      const deleting = inBatches(entries, batch, async (part) => {
        const request = { subscriptionId, monitoredItemIds: part.map(([, id]) => id) };
        return (await link.call("DeleteMonitoredItems", request, signal)).results ?? [];
      });
      await orRefused(deleting, signal);
    },
  };
}

function requested(
  ua: Ua,
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
