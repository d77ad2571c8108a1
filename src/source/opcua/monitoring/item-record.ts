// A monitored item as it is remembered from one connection to the next: by what it is of, and how it is sampled. Pure.
import type { Item } from "../nodes/items.ts";
import type { SubscriptionRecord } from "../session/resumption.ts";

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
