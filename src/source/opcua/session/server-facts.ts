// What is asked of a server first: its namespaces, its limits, who it is.
import { AgentError } from "../../../core/errors.ts";
import type { Link } from "./link.ts";
import type { Product } from "./server-profile.ts";
import { Services } from "./services.ts";
import type { Ua } from "./stack.ts";

export interface ServerFacts {
  /** URI of each namespace by its index. Changes when the server starts again. */
  readonly namespaces: readonly string[];
  /** Operations in one call; 0: no limit is declared. */
  readonly limits: {
    readonly read: number;
    readonly browse: number;
    readonly monitor: number;
    readonly history: number;
    readonly itemsPerSubscription: number;
  };
  readonly product: Product;
  /** When it started, as text to compare; empty where it does not tell. */
  readonly started: string;
}

/** Nodes of the Server object (OPC 10000-5, 6.3). */
const nodes = {
  namespaces: 2255,
  started: 2257,
  read: 11705,
  browse: 11710,
  monitor: 11714,
  history: 12165,
  itemsPerSubscription: 24104,
  product: 2261,
  productUri: 2262,
  manufacturer: 2263,
  version: 2264,
};

/** Reads them, one by one: a server may allow no more in one call than it has yet to tell. Rejects with `SOURCE_*`. */
export async function readFacts(ua: Ua, link: Link, signal: AbortSignal): Promise<ServerFacts> {
  const services = new Services(ua, link, { read: 1, browse: 1 });
  const value = async (id: number): Promise<unknown> => {
    const target = { nodeId: ua.makeNodeId(id, 0), attributeId: ua.AttributeIds.Value };
    const [answer] = await services.read([target], signal);
    return answer?.value?.value;
  };
  const namespaces = await value(nodes.namespaces);
  if (!Array.isArray(namespaces) || !namespaces.every((uri) => typeof uri === "string" || uri === null))
    throw new AgentError("SOURCE_PROTOCOL", "the server does not tell its namespaces (NamespaceArray, i=2255)");
  const limit = async (id: number) => {
    const given = await value(id);
    return typeof given === "number" && given > 0 ? given : 0;
  };
  const text = async (id: number) => {
    const given = await value(id);
    return typeof given === "string" ? given : "";
  };
  const started = await value(nodes.started);
  return {
    started: started instanceof Date ? started.toISOString() : "",
    namespaces: namespaces.map((uri) => uri ?? ""),
    limits: {
      read: await limit(nodes.read),
      browse: await limit(nodes.browse),
      monitor: await limit(nodes.monitor),
      history: await limit(nodes.history),
      itemsPerSubscription: await limit(nodes.itemsPerSubscription),
    },
    product: {
      name: await text(nodes.product),
      uri: await text(nodes.productUri),
      manufacturer: await text(nodes.manufacturer),
      version: await text(nodes.version),
    },
  };
}
