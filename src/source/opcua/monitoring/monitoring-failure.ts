// An address that gives no data: the server refuses to monitor its node, or the address has no node.
import type { EpochMicros } from "../../../core/point.ts";
import type { Reading } from "../../../core/source.ts";
import type { Item, Unresolved } from "../nodes/items.ts";

/** An address without data at present. */
export interface MonitoringFailure extends Unresolved {
  readonly captures: Item["captures"];
  /** The item that the server refused; undefined if the address has no node. */
  readonly item?: Item;
}

export function monitoringFailure(item: Item, reason: string): MonitoringFailure {
  const { tag, captures, address } = item;
  return { tag, captures, address, reason, item };
}

export function failureReading(failure: MonitoringFailure, time: EpochMicros): Reading {
  const { tag, captures, address, reason, item } = failure;
  const none = { value: undefined, time, clock: "agent", quality: "bad", historical: false } as const;
  // Without an item, the address is the pattern that found nothing.
  return { tag, captures, address, reason, ...none, ...(!item && { wholeTag: true }) };
}
