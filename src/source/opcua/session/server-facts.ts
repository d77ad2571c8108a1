// Reads what a server reports about itself: namespaces, limits, product, state and redundant set.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { orRefused } from "../stack/failure.ts";
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

/** Reads one value at a time, since the server's limits are not yet known. Rejects with `SOURCE_*`. */
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
  const namespaces = await readNamespaces(services, signal);
  const started = await value(nodes.started);
  return {
    /** Text for comparison; empty if the server does not report its start time. */
    started: started instanceof Date ? started.toISOString() : "",
    /** Namespace URIs by index. They may change when the server restarts; `addNamespaces` adds later ones. */
    namespaces,
    /** Operations per call; 0 if the server declares no limit. */
    limits: {
      read: await limit(11705),
      browse: await limit(11710),
      monitor: await limit(11714),
      history: await limit(12165),
      itemsPerSubscription: await limit(24104),
    },
    /** BuildInfo (OPC 10000-5, 12.4). */
    product: {
      name: await text(2261),
      uri: await text(2262),
      manufacturer: await text(2263),
      version: await text(2264),
    },
  };
}

async function readNamespaces(services: Services, signal: AbortSignal): Promise<string[]> {
  const [answer] = await readValues(services, [nodes.namespaces], signal);
  const namespaces: unknown = answer?.value?.value;
  if (!Array.isArray(namespaces) || !namespaces.every((uri) => typeof uri === "string" || uri === null))
    throw new AgentError("SOURCE_PROTOCOL", "the server does not tell its namespaces (NamespaceArray, i=2255)");
  return namespaces.map((uri) => uri ?? "");
}

/**
 * Adds to `namespaces` those that the server has registered since. Rejects with `SOURCE_*` if an index means another
 * namespace now: the nodes must then be found again.
 */
export async function addNamespaces(services: Services, namespaces: string[], signal: AbortSignal): Promise<void> {
  const now = await orRefused(readNamespaces(services, signal), signal);
  if (!now) return;
  if (!namespaces.every((uri, i) => now[i] === uri))
    throw new AgentError("SOURCE_UNREACHABLE", "the server has changed its namespaces: connecting again");
  namespaces.push(...now.slice(namespaces.length));
}

/**
 * The weakness of a server that does not mark discarded values, known by its product: a full queue may have overflowed.
 * Undefined for all others.
 */
export function overflowWeakness({ manufacturer, uri, version }: ServerFacts["product"]): string | undefined {
  // asyncua discards values without the overflow bit (2.1, internal_subscription.py); opcua is its predecessor.
  const asyncua = manufacturer === "FreeOpcUa" || uri.includes("freeopcua");
  // open62541 sets the overflow bit since 1.0 (its issue 1505).
  const oldOpen62541 = uri.includes("open62541") && /^v?0\./.test(version);
  if (!asyncua && !oldOpen62541) return undefined;
  return "does not mark the values that full queues discard, so each full queue counts as an overflow";
}

/** ServerState (OPC 10000-5, 12.6). */
const states = "running, failed, not configured, suspended, shutting down, being tested, in communication fault".split(
  ", ",
);
const mostOftenMs = 1_000;
const leastOftenMs = 60_000;

/** Keeps an idle session alive and watches the server's state. */
export function sessionKeepAlive(link: Pick<Link, "session">, services: Services, runtime: Runtime) {
  let last = 0;
  const text = () => (last === 0 ? undefined : (states[last] ?? "unknown"));

  /** Reads the state often enough to keep the session alive, also without data. Ignores failed reads. */
  async function run(signal: AbortSignal): Promise<never> {
    // Some servers report a session timeout of zero.
    const everyMs = Math.min(leastOftenMs, Math.max(mostOftenMs, link.session.timeoutMs / 3 || leastOftenMs));
    for (;;) {
      const [answer] = await readValues(services, [nodes.state], signal).catch(() => []);
      signal.throwIfAborted();
      const state = answer?.value?.value;
      if (typeof state === "number" && state !== last) {
        last = state;
        runtime.log.warn({ state: text() ?? states[0] }, "the server's state has changed");
      }
      await runtime.clock.sleep(everyMs, signal);
    }
  }

  return {
    /** Undefined while the server is running. */
    get state(): string | undefined {
      return text();
    },
    run,
  };
}

/** The redundant set as its server reports it (OPC 10000-4, 6.6.2). */
export interface RedundantSet {
  /** `hot`, `warm` and so on. Undefined if the server reports no set, or fails over by itself. */
  readonly support: string | undefined;
  readonly uri: string | undefined;
  /** The other servers of the set: application URI, and their addresses if this server knows them. */
  readonly partners: readonly { readonly uri: string; readonly urls: readonly string[] }[];
}

/** RedundancySupport (OPC 10000-5, 12.5). Undefined where there is no set, or where the set fails over by itself. */
const supports = [undefined, "cold", "warm", "hot", undefined, "hot and mirrored"];

/** Rejects only with `signal.reason`. Values that the server does not report are undefined. */
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
  // The server may also know the addresses of its partners.
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

/** Advice if `servers` lacks partners, compared by URI and address. Undefined if it has all of them. */
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
