// What a server tells of itself: namespaces, limits, product, state, and the redundant set it belongs to.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Link } from "./link.ts";
import { readValues, Services } from "./services.ts";

export interface ServerFacts {
  /** URI of each namespace by its index. Changes when the server starts again. */
  readonly namespaces: readonly string[];
  /** Operations in one call; 0: no limit is declared. */
  readonly limits: Readonly<Record<keyof typeof limits, number>>;
  readonly product: Product;
  /** When it started, as text to compare; empty where it does not tell. */
  readonly started: string;
}

/** Who made the server (BuildInfo, OPC 10000-5, 12.4). */
export type Product = Readonly<Record<keyof typeof product, string>>;

/** Nodes of the Server object (OPC 10000-5, 6.3). */
const nodes = {
  serverArray: 2254,
  namespaces: 2255,
  started: 2257,
  state: 2259,
  redundancySupport: 3709,
  serverUris: 11314,
} as const;
const limits = { read: 11705, browse: 11710, monitor: 11714, history: 12165, itemsPerSubscription: 24104 };
const product = { name: 2261, uri: 2262, manufacturer: 2263, version: 2264 };

/** Reads them, one by one: a server may allow no more in one call than it has yet to tell. Rejects with `SOURCE_*`. */
export async function readFacts(link: Link, signal: AbortSignal): Promise<ServerFacts> {
  const services = new Services(link, { read: 1, browse: 1 });
  const value = async (node: number): Promise<unknown> => (await readValues(services, [node], signal))[0]?.value?.value;
  const each = async <K extends string, T>(of: Readonly<Record<K, number>>, as: (value: unknown) => T) => {
    const found: [string, T][] = [];
    for (const [name, node] of Object.entries<number>(of)) found.push([name, as(await value(node))]);
    return Object.fromEntries(found) as Record<K, T>; // with the same keys
  };
  const namespaces = await value(nodes.namespaces);
  if (!Array.isArray(namespaces) || !namespaces.every((uri) => typeof uri === "string" || uri === null))
    throw new AgentError("SOURCE_PROTOCOL", "the server does not tell its namespaces (NamespaceArray, i=2255)");
  const started = await value(nodes.started);
  return {
    started: started instanceof Date ? started.toISOString() : "",
    namespaces: namespaces.map((uri) => uri ?? ""),
    limits: await each(limits, (limit) => (typeof limit === "number" && limit > 0 ? limit : 0)),
    product: await each(product, (text) => (typeof text === "string" ? text : "")),
  };
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

/** What is known of a product. Undefined: nothing to heed. */
export function profileOf({ manufacturer, uri, version }: Product): ServerProfile | undefined {
  // Its queue drops the oldest value without a mark (asyncua 2.1, internal_subscription.py); opcua is the older package.
  const asyncua = manufacturer === "FreeOpcUa" || uri.includes("freeopcua");
  // The mark came with 1.0 (issue 1505 of open62541).
  const oldOpen62541 = uri.includes("open62541") && /^v?0\./.test(version);
  if (!asyncua && !oldOpen62541) return undefined;
  return {
    weakness: "does not tell what its queues throw away: a queue that comes full counts as one that was too short",
    overflowUntold: true,
  };
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
const mostOftenMs = 1_000;
const leastOftenMs = 60_000;

/** Keeps the session alive where nothing else is asked for long, and knows how the server says that it is. */
export class SessionKeeper {
  readonly #parts: { readonly link: Link; readonly services: Services; readonly runtime: Runtime };
  #state = 0;

  constructor(parts: { readonly link: Link; readonly services: Services; readonly runtime: Runtime }) {
    this.#parts = parts;
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
    const { link, services, runtime } = this.#parts;
    // A server that does not tell how long it keeps a session has told zero.
    const everyMs = Math.min(leastOftenMs, Math.max(mostOftenMs, link.session.timeoutMs / 3 || leastOftenMs));
    for (;;) {
      const [answer] = await readValues(services, [nodes.state], signal).catch(() => []);
      signal.throwIfAborted();
      const state = answer?.value?.value;
      if (typeof state === "number" && state !== this.#state) {
        this.#state = state;
        runtime.log.warn({ state: this.state ?? states[0] }, "the server's state has changed");
      }
      await runtime.clock.sleep(everyMs, signal);
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

/** What a server tells of the redundant set it belongs to (OPC 10000-4, 6.6.2). */
export interface RedundantSet {
  /** `hot`, `warm`; undefined: the server does not tell of a set, or it changes over by itself. */
  readonly support: string | undefined;
  /** Of the server's own application. */
  readonly uri: string | undefined;
  readonly partners: readonly Partner[];
}

/** Names of RedundancySupport (OPC 10000-5, 12.5); those without one are no set, or change over by themselves. */
const supports = [undefined, "cold", "warm", "hot", undefined, "hot and mirrored"];

/** Never rejects but with `signal.reason`: what a server does not tell is not known. */
export async function readRedundantSet(
  link: Link,
  services: Services,
  url: string,
  signal: AbortSignal,
): Promise<RedundantSet> {
  const asked = [nodes.serverArray, nodes.redundancySupport, nodes.serverUris];
  const answers = await readValues(services, asked, signal).catch(() => []);
  signal.throwIfAborted();
  const [own, mode, members] = answers.map((answer) => answer.value?.value);
  const uri = textsOf(own)[0];
  const support = typeof mode === "number" ? supports[mode] : undefined;
  const others = support === undefined ? [] : [...new Set(textsOf(members))].filter((each) => each !== uri);
  const urls = others.length === 0 ? new Map<string, string[]>() : await addressesOf(link, url, others, signal);
  return { support, uri, partners: others.map((other) => ({ uri: other, urls: urls.get(other) ?? [] })) };
}

/** Asks the server where the others are (FindServers). Empty where it does not know. */
async function addressesOf(link: Link, endpointUrl: string, serverUris: string[], signal: AbortSignal) {
  const found = await link.call("FindServers", { endpointUrl, serverUris }, signal).catch(() => undefined);
  signal.throwIfAborted();
  return new Map(
    (found?.servers ?? []).map(({ applicationUri, discoveryUrls }) => [
      applicationUri ?? "",
      textsOf(discoveryUrls).filter((each) => each.startsWith("opc.tcp://")),
    ]),
  );
}

/** What to write for those of its partners that are not among the servers known by URI or address. Undefined: nothing. */
export function partnerAdvice(
  { support, partners }: Pick<RedundantSet, "support" | "partners">,
  uris: readonly (string | undefined)[],
  addresses: readonly string[],
): string | undefined {
  const unknown = partners.filter(
    ({ uri, urls }) => !uris.includes(uri) && !urls.some((url) => addresses.includes(url)),
  );
  if (unknown.length === 0) return undefined;
  const names = unknown.map(({ uri, urls }) => (urls[0] === undefined ? uri : `${uri} at ${urls[0]}`)).join(", ");
  return `the server is one of a redundant set (${support}); servers does not have ${names}`;
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string" && each !== "") : [];
}
