// Addresses that give no data, and the tags among them that the server refuses permanently. Device states such as a
// broken sensor are no refusals.

import type { EpochMicros } from "../../../core/point.ts";
import type { ConfigFault, Reading, SourceCheck, TagId } from "../../../core/source.ts";
import { badReading } from "../../../lib/readings/reading-batch.ts";
import type { Item, Tag, Unresolved } from "../nodes/items.ts";
import type { StructureTypes } from "../nodes/structure-types.ts";
import type { Services } from "../session/services.ts";
import { convert, transient } from "../types/value.ts";
import { readItems } from "./polling.ts";

/** Status code → the expectation that the node does not meet. */
const refusals: Readonly<Record<string, Expected>> = {
  BadNodeIdInvalid: "node",
  BadNodeIdUnknown: "node",
  BadAttributeIdInvalid: "node",
  BadNotReadable: "right",
  BadUserAccessDenied: "right",
};

/** The server refuses to monitor the node, which can still be read. */
export const tooMany = "BadTooManyMonitoredItems";
export const notMonitored: readonly string[] = [
  tooMany,
  "BadMonitoringModeInvalid",
  "BadNotSupported",
  "BadServiceUnsupported",
];
/** Upper 16 bits of BadNodeIdInvalid and BadNodeIdUnknown, the status of values whose node was deleted. */
export const nodeDeleted: readonly number[] = [0x80_33, 0x80_34];

type Expected = "node" | "right" | "value";

interface RefusedNodesOptions {
  readonly tags: readonly Tag[];
  /** Items that cannot be monitored, with reasons. */
  readonly failures: readonly Omit<MonitoringFailure, "captures">[];
  readonly items: readonly Item[];
  readonly services: Pick<Services, "read">;
  readonly structures: StructureTypes;
  readonly url: string;
}

/** Reads each item once. Rejects with `SOURCE_*` if the connection fails. */
export async function refusedNodes(
  { tags, failures, items, services, structures, url }: RefusedNodesOptions,
  signal: AbortSignal,
): Promise<SourceCheck> {
  const remedies: Readonly<Record<Expected, readonly [expected: string, remedy: string]>> = {
    node: ["a node of the server", `tagferry browse ${url} lists what the server has`],
    right: ["a node that may be read", "give the user of this source the right to read it at the server"],
    value: [
      "a value that can be stored",
      "name a node, an element (index) or a member (field) that holds a number, a text or a truth value",
    ],
  };
  const fault = (tag: TagId, address: string, kind: Expected, found: string): ConfigFault => {
    const { node, path } = tags[tag] ?? {};
    const [expected, hint] = remedies[kind];
    const field = node === undefined ? (path === undefined ? "browse" : "path") : "node";
    return { tag, field, message: `expected ${expected}, got ${found}, for ${address}`, hint };
  };
  // Any other status of an existing node may depend on the device's state; the read decides.
  const lasting = failures.filter(({ item, reason }) => !item || refusals[statusIn(reason)]);
  const refused = lasting.map(({ tag, address, reason }) =>
    fault(tag, address, refusals[statusIn(reason)] ?? "node", reason.replace(/[.: ]+$/, "")),
  );
  const failed = new Set(lasting.map(({ tag, address }) => `${tag} ${address}`));
  const asked = items.filter(({ tag, address }) => !failed.has(`${tag} ${address}`));
  const pairs = await readItems(services, asked, signal);
  await structures.learn(pairs, signal);
  const values: Required<SourceCheck>["values"][number][] = [];
  for (const [item, { statusCode, value }] of pairs) {
    const { tag, address, index, part } = item;
    const status = statusIn(statusCode.name);
    const kind = refusals[status];
    if (kind) refused.push(fault(tag, address, kind, status));
    if (statusCode.value >>> 30 !== 0) continue;
    const converted = part ? part(value) : convert(value, index);
    if ("value" in converted) values.push({ tag, value: converted.value });
    else if (!transient.includes(converted.reason)) refused.push(fault(tag, address, "value", converted.reason));
  }
  return { refused, values };
}

/** The status name of `BadNodeIdUnknown: the node id …` and of `BadNodeIdUnknown#overflow`. */
function statusIn(text: string): string {
  return /^\w+/.exec(text)?.[0] ?? "";
}

/** An address that gives no data at present: the server refuses to monitor its node, or the address has no node. */
export interface MonitoringFailure extends Unresolved {
  readonly captures: Item["captures"];
  /** The item that the server refused; undefined if the address has no node. */
  readonly item?: Item;
  /** Any answer with the value fails, so that the node must be read successfully before it is monitored again. */
  readonly isUnreadable?: true;
}

export function monitoringFailure(item: Item, reason: string): MonitoringFailure {
  const { tag, captures, address } = item;
  return { tag, captures, address, reason, item };
}

export function failureReading(failure: MonitoringFailure, time: EpochMicros): Reading {
  const { tag, captures, address, reason, item } = failure;
  // Without an item, the address is the pattern that found nothing.
  return { ...badReading({ tag, captures, address, time }, reason), ...(!item && { wholeTag: true }) };
}
