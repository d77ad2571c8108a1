// Lists what a server offers, as a tree: objects and variables with value, unit and the tag that would read them.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Runtime } from "../../core/runtime.ts";
import type { BrowsedNode, BrowseTarget, TagId } from "../../core/source.ts";
import { describe } from "./description.ts";
import { discover } from "./discovery.ts";
import { chooseEndpoint } from "./endpoint.ts";
import type { Item } from "./items.ts";
import { openLink } from "./link.ts";
import { portableNodeId } from "./node-address.ts";
import { type OpcuaOptions, opcuaOptions } from "./options.ts";
import { openPki } from "./pki.ts";
import { ClockCheck } from "./reading.ts";
import { Resumption } from "./resumption.ts";
import { readFacts } from "./server-facts.ts";
import { type Child, type NodeId, Services } from "./services.ts";
import { loadStack, type Ua } from "./stack.ts";
import { convert } from "./value.ts";

const mostNodes = 100_000;
const serverObject = 2253;

/**
 * From Objects down, parents before children. Nothing is remembered: certificate and session are of the moment. It asks
 * without security where the server lets it and no password goes out in clear text, since it reads and keeps nothing.
 * Rejects as `open` does.
 */
export async function* browseOpcua(
  target: BrowseTarget,
  runtime: Runtime,
  signal: AbortSignal,
): AsyncGenerator<BrowsedNode> {
  await using resources = new AsyncDisposableStack();
  const stack = await loadStack(runtime.log);
  const stateDir = await mkdtemp(join(tmpdir(), "tagferry-browse-"));
  resources.defer(() => rm(stateDir, { recursive: true, force: true }));
  const pki = resources.use(await openPki(stack, { agent: "browse", stateDir }));
  const options = opcuaOptions.parse({
    url: target.url,
    ...(target.username !== undefined && { username: target.username, password: target.password ?? "" }),
  });
  const linkOptions = { name: "browse", agent: "browse", options, pki };
  const offered = await discover(stack, linkOptions, signal);
  const open: OpcuaOptions = { ...options, security: { mode: "none" } };
  const endpoint = tryOr(
    () => chooseEndpoint(offered, open),
    () => chooseEndpoint(offered, options),
  );
  if (endpoint.securityMode !== stack.ua.MessageSecurityMode.None) await pki.verify(endpoint.serverCertificate);
  const resumption = await Resumption.open(join(stateDir, "session.json"), "", runtime.log);
  const link = await openLink(stack, linkOptions, endpoint, resumption, runtime.log, signal);
  resources.defer(() => link.close({ deleteSubscriptions: true }));
  const facts = await readFacts(stack.ua, link, signal);
  yield* walk(stack.ua, new Services(stack.ua, link, facts.limits), facts.namespaces, signal);
}

function tryOr<T>(first: () => T, second: () => T): T {
  try {
    return first();
  } catch {
    return second();
  }
}

interface Level {
  readonly nodes: readonly Child[];
  /** Children of each of `nodes`, asked for in one call. */
  readonly below: readonly (readonly Child[])[];
  readonly facts: readonly Partial<BrowsedNode>[];
  next: number;
}

async function* walk(
  ua: Ua,
  services: Services,
  namespaces: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<BrowsedNode> {
  const seen = new Set<string>();
  const unseen = (nodes: readonly Child[]) =>
    nodes.filter(({ nodeId, property }) => {
      const key = nodeId.toString();
      if (property || (nodeId.namespace === 0 && nodeId.value === serverObject) || seen.has(key)) return false;
      seen.add(key);
      return true;
    });
  const level = async (children: readonly Child[]): Promise<Level> => {
    const nodes = unseen(children);
    const ids = nodes.map(({ nodeId }) => nodeId);
    return {
      nodes,
      below: await services.children(ids, signal),
      facts: await factsOf(ua, services, nodes, signal),
      next: 0,
    };
  };
  const [roots = []] = await services.children([ua.makeNodeId(85, 0)], signal);
  const path = [await level(roots)];
  for (let top = path.at(-1); top && seen.size < mostNodes; top = path.at(-1)) {
    const i = top.next++;
    const node = top.nodes[i];
    if (!node) {
      path.pop();
      continue;
    }
    const address = portableNodeId(node.nodeId.toString(), namespaces);
    yield { address, name: node.name, depth: path.length - 1, signal: {}, tag: { node: address }, ...top.facts[i] };
    const below = top.below[i] ?? [];
    if (below.length > 0) path.push(await level(below));
  }
}

/** Value and description of the variables among the nodes. */
async function factsOf(
  ua: Ua,
  services: Services,
  nodes: readonly Child[],
  signal: AbortSignal,
): Promise<Partial<BrowsedNode>[]> {
  const variables = nodes.filter(({ variable }) => variable);
  const values = await services.read(
    variables.map(({ nodeId }) => ({ nodeId, attributeId: ua.AttributeIds.Value })),
    signal,
  );
  const descriptions = await describe(ua, services, variables.map(itemOf), signal);
  const facts = new Map(
    variables.map(({ nodeId }, i) => {
      const converted = convert(values[i]?.value);
      return [nodeId, { ...("value" in converted && converted), signal: descriptions[i]?.signal ?? {} }] as const;
    }),
  );
  return nodes.map(({ nodeId }) => facts.get(nodeId) ?? {});
}

function itemOf({ nodeId, name }: { readonly nodeId: NodeId; readonly name: string }): Item {
  return {
    tag: 0 as TagId,
    captures: {},
    address: name,
    nodeId,
    every: 1_000,
    clockCheck: new ClockCheck(),
    index: undefined,
  };
}
