// What a server tells of itself: namespaces, limits, product, state, and the redundant set it belongs to.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Link } from "./link.ts";
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

/** Who made the server (BuildInfo, OPC 10000-5, 12.4). */
export interface Product {
  readonly name: string;
  readonly uri: string;
  readonly manufacturer: string;
  readonly version: string;
}

/**
 * A weakness that servers do not tell of when they are asked, known by the product. What a server tells (limits, services that it
 * does not have, sizes that it revises) is found out at each connection, and stands nowhere in here.
 */
export interface ServerProfile {
  /** As it is shown. */
  readonly weakness: string;
  /** Does not mark the value before which it threw others away: a queue that comes full may have been too short. */
  readonly overflowUntold: boolean;
}

interface Known extends ServerProfile {
  readonly fits: (product: Product) => boolean;
}

const overflowUntold = {
  weakness: "does not tell what its queues throw away: a queue that comes full counts as one that was too short",
  overflowUntold: true,
} as const;

const known: readonly Known[] = [
  // Its queue drops the oldest value without a mark (asyncua 2.1, internal_subscription.py); opcua is the older package.
  { ...overflowUntold, fits: ({ manufacturer, uri }) => manufacturer === "FreeOpcUa" || uri.includes("freeopcua") },
  // The mark came with 1.0 (issue 1505 of open62541).
  { ...overflowUntold, fits: ({ uri, version }) => uri.includes("open62541") && /^v?0\./.test(version) },
];

/** What is known of a product. Undefined: nothing to heed. */
export function profileOf(product: Product): ServerProfile | undefined {
  return known.find(({ fits }) => fits(product));
}

/** ServerState (OPC 10000-5, 12.6): what a server says of itself. */
const states = [
  "running",
  "failed",
  "not configured",
  "suspended",
  "shutting down",
  "being tested",
  "in communication fault",
  "unknown",
];
/** Server_ServerStatus_State. */
const serverState = 2259;
const mostOftenMs = 1_000;
const leastOftenMs = 60_000;

/** Keeps the session alive where nothing else is asked for long, and knows how the server says that it is. */
export class SessionKeeper {
  readonly #ua: Ua;
  readonly #link: Link;
  readonly #services: Services;
  readonly #runtime: Runtime;
  #state = 0;

  constructor(parts: { readonly ua: Ua; readonly link: Link; readonly services: Services; readonly runtime: Runtime }) {
    this.#ua = parts.ua;
    this.#link = parts.link;
    this.#services = parts.services;
    this.#runtime = parts.runtime;
  }

  /** In words; undefined: it runs, as it should. */
  get state(): string | undefined {
    return this.#state === 0 ? undefined : (states[this.#state] ?? "unknown");
  }

  /**
   * Asks for the state often enough for the server not to end the session: a request for notifications may wait longer
   * than the server keeps a session without requests. Until `signal` aborts. That it does not answer is for others to notice.
   */
  async run(signal: AbortSignal): Promise<never> {
    const { clock, log } = this.#runtime;
    // A server that does not tell how long it keeps a session has told zero.
    const everyMs = Math.min(leastOftenMs, Math.max(mostOftenMs, this.#link.session.timeoutMs / 3 || leastOftenMs));
    const target = { nodeId: this.#ua.makeNodeId(serverState, 0), attributeId: this.#ua.AttributeIds.Value };
    for (;;) {
      const [answer] = await this.#services.read([target], signal).catch(() => []);
      signal.throwIfAborted();
      const state = answer?.value?.value;
      if (typeof state === "number" && state !== this.#state) {
        this.#state = state;
        log.warn({ state: this.state ?? states[0] }, "the server's state has changed");
      }
      await clock.sleep(everyMs, signal);
    }
  }
}

/** Another server of the set. */
export interface Partner {
  /** Of its application. */
  readonly uri: string;
  /** Where it can be reached, as far as this server knows. */
  readonly urls: readonly string[];
}

export interface RedundantSet {
  /** `hot`, `warm`; undefined: the server does not tell of a set, or it changes over by itself. */
  readonly support: string | undefined;
  /** Of the server's own application. */
  readonly uri: string | undefined;
  readonly partners: readonly Partner[];
}

/** Server_ServerArray, Server_ServerRedundancy_RedundancySupport, Server_ServerRedundancy_ServerUriArray. */
const redundancyNodes = { own: 2254, support: 3709, servers: 11314 };
/** Names of RedundancySupport (OPC 10000-5, 12.5). */
const supports = ["none", "cold", "warm", "hot", "transparent", "hot and mirrored"];
const byItself = ["none", "transparent"];

/** Never rejects but with `signal.reason`: what a server does not tell is not known. */
export async function readRedundantSet(
  ua: Ua,
  link: Link,
  services: Services,
  url: string,
  signal: AbortSignal,
): Promise<RedundantSet> {
  const targets = [redundancyNodes.own, redundancyNodes.support, redundancyNodes.servers].map((id) => ({
    nodeId: ua.makeNodeId(id, 0),
    attributeId: ua.AttributeIds.Value,
  }));
  const answers = await services.read(targets, signal).catch(() => []);
  signal.throwIfAborted();
  const [own, mode, members] = answers.map((answer) => answer.value?.value);
  const uri = textsOf(own)[0];
  const named = typeof mode === "number" ? supports[mode] : undefined;
  const support = named === undefined || byItself.includes(named) ? undefined : named;
  const others = support === undefined ? [] : [...new Set(textsOf(members))].filter((each) => each !== uri);
  const urls = others.length === 0 ? new Map<string, string[]>() : await addressesOf(ua, link, url, others, signal);
  return { support, uri, partners: others.map((other) => ({ uri: other, urls: urls.get(other) ?? [] })) };
}

/** Asks the server where the others are (FindServers). Empty where it does not know. */
async function addressesOf(ua: Ua, link: Link, endpointUrl: string, serverUris: string[], signal: AbortSignal) {
  const request = new ua.FindServersRequest({ endpointUrl, serverUris });
  const found = await link.call(request, ua.FindServersResponse, signal).catch(() => undefined);
  signal.throwIfAborted();
  return new Map(
    (found?.servers ?? []).map(({ applicationUri, discoveryUrls }) => [
      applicationUri ?? "",
      textsOf(discoveryUrls).filter((each) => each.startsWith("opc.tcp://")),
    ]),
  );
}

/** Those of the partners that are not among the servers known by URI or address. */
export function unknownPartners(
  { partners }: Pick<RedundantSet, "partners">,
  uris: readonly (string | undefined)[],
  addresses: readonly string[],
): readonly Partner[] {
  return partners.filter(({ uri, urls }) => !uris.includes(uri) && !urls.some((url) => addresses.includes(url)));
}

/** What to write for them. */
export function partnerAdvice(support: string | undefined, partners: readonly Partner[]): string | undefined {
  if (partners.length === 0) return undefined;
  const names = partners.map(({ uri, urls }) => (urls[0] === undefined ? uri : `${uri} at ${urls[0]}`)).join(", ");
  return `the server is one of a redundant set (${support}); servers does not have ${names}`;
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string" && each !== "") : [];
}
