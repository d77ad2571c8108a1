// What a server tells of the redundant set it belongs to: how the set works, and who else is in it (OPC 10000-4, 6.6.2).
import type { Link } from "./link.ts";
import type { Services } from "./services.ts";
import type { Ua } from "./stack.ts";

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
const nodes = { own: 2254, support: 3709, servers: 11314 };
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
  const targets = [nodes.own, nodes.support, nodes.servers].map((id) => ({
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
