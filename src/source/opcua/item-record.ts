// A monitored item as it is remembered from one connection to the next: by what it is of, and how it is sampled. Pure.
import type { Item } from "./items.ts";
import type { SubscriptionRecord } from "./resumption.ts";

/** Client handle, the server's number, key, values that the server keeps. */
export type Entry = SubscriptionRecord["items"][number];

/** The same for what is monitored in the same way. */
export function keyOf(item: Item, queueSize: number): string {
  return `${item.nodeId.toString()}\n${item.every} ${queueSize} ${bandOf(item)}`;
}

/** The node of an item in the record, as text. */
export function nodeOf([, , key]: Entry): string {
  return key.split("\n")[0] ?? "";
}

/** The same for items that give the same values, however many of them the server keeps. */
export function likeness(item: Item): string {
  return `${item.nodeId.toString()}\n${item.every} ${bandOf(item)}`;
}

/** As `likeness`, of an item in the record. */
export function likenessOf(entry: Entry): string {
  const [every, , ...band] = (entry[2].split("\n").at(-1) ?? "").split(" ");
  return `${nodeOf(entry)}\n${every} ${band.join(" ")}`;
}

function bandOf({ deadband }: Item): string {
  return deadband ? `${deadband.kind} ${deadband.value}` : "";
}
