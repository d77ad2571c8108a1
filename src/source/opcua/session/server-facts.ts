// What a server tells of itself: namespaces, limits, product, state, and the redundant set it belongs to.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Link } from "./link.ts";
import { readValues, Services } from "./services.ts";

/** Nodes of the Server object (OPC 10000-5, 6.3). */
const nodes = {
  serverArray: 2254,
  namespaces: 2255,
  started: 2257,
  state: 2259,
  redundancySupport: 3709,
  serverUris: 11314,
} as const;

export type ServerFacts = Awaited<ReturnType<typeof readFacts>>;

/** Reads them, one by one: a server may allow no more in one call than it has yet to tell. Rejects with `SOURCE_*`. */
export async function readFacts(link: Link, signal: AbortSignal) {
  const services = new Services(link, { read: 1, browse: 1 });
  const value = async (node: number): Promise<unknown> => (await readValues(services, [node], signal))[0]?.value?.value;
  const text = async (node: number) => {
    const found = await value(node);
    return typeof found === "string" ? found : "";
  };
  const limit = async (node: number) => {
    const found = await value(node);
    return typeof found === "number" && found > 0 ? found : 0;
  };
  const namespaces = await value(nodes.namespaces);
  if (!Array.isArray(namespaces) || !namespaces.every((uri) => typeof uri === "string" || uri === null))
    throw new AgentError("SOURCE_PROTOCOL", "the server does not tell its namespaces (NamespaceArray, i=2255)");
  const uris: readonly string[] = namespaces.map((uri) => uri ?? "");
  const started = await value(nodes.started);
  return {
    /** As text to compare; empty where it does not tell. */
    started: started instanceof Date ? started.toISOString() : "",
    /** URI of each namespace by its index. Changes when the server starts again. */
    namespaces: uris,
    /** Operations in one call; 0: no limit is declared. */
    limits: {
      read: await limit(11705),
      browse: await limit(11710),
      monitor: await limit(11714),
      history: await limit(12165),
      itemsPerSubscription: await limit(24104),
    },
    /** Who made the server (BuildInfo, OPC 10000-5, 12.4). */
    product: {
      name: await text(2261),
      uri: await text(2262),
      manufacturer: await text(2263),
      version: await text(2264),
    },
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
export function profileOf({ manufacturer, uri, version }: ServerFacts["product"]): ServerProfile | undefined {
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
const states = "running, failed, not configured, suspended, shutting down, being tested, in communication fault".split(
  ", ",
);
const mostOftenMs = 1_000;
const leastOftenMs = 60_000;

interface KeeperParts {
  readonly link: Link;
  readonly services: Services;
  readonly runtime: Runtime;
}

/** Keeps the session alive where nothing else is asked for long, and knows how the server says that it is. */
export class SessionKeeper {
  readonly #parts: KeeperParts;
  #state = 0;

  constructor(parts: KeeperParts) {
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

/** What a server tells of the redundant set it belongs to (OPC 10000-4, 6.6.2). */
export interface RedundantSet {
  /** `hot`, `warm`; undefined: the server does not tell of a set, or it changes over by itself. */
  readonly support: string | undefined;
  readonly uri: string | undefined;
  /** Other servers of the set: their applications, and where they can be reached as far as this server knows. */
  readonly partners: readonly { readonly uri: string; readonly urls: readonly string[] }[];
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
  if (others.length === 0) return { support, uri, partners: [] };
  // Where they are the server may know, too.
  const asking = link.call("FindServers", { endpointUrl: url, serverUris: others }, signal);
  const found = await asking.catch(() => undefined);
  signal.throwIfAborted();
  const urlsOf = (other: string) =>
    (found?.servers ?? [])
      .filter((each) => each.applicationUri === other)
      .flatMap((each) => textsOf(each.discoveryUrls));
  const partners = others.map((other) => ({
    uri: other,
    urls: urlsOf(other).filter((each) => each.startsWith("opc.tcp://")),
  }));
  return { support, uri, partners };
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
