// Lists objects and variables of a server as a tree, with value, unit and the tag that reads them.
import { X509Certificate } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BrowsedNode, BrowseTarget, OfferedEndpoint } from "../../../core/commissioning.ts";
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { TagId } from "../../../core/source.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import { openPki, type PkiOptions, probePlace, remedyIn } from "../certificates/pki.ts";
import { certificateIn, described, isCalled, thumbprintOf } from "../certificates/trust.ts";
import { portableNodeId } from "../config/node-address.ts";
import { type OpcuaOptions, opcuaOptions } from "../config/options.ts";
import { describe } from "../nodes/description.ts";
import { assertReachable, discover, verifyServer } from "../session/client.ts";
import { chooseEndpoint, isSecure, loginsOf, passwordInClear, securityOf, weaknessOf } from "../session/endpoint.ts";
import { openLink } from "../session/link.ts";
import { identityOf } from "../session/login.ts";
import { readFacts } from "../session/server-facts.ts";
import { type Child, isOffered, readValues, Services } from "../session/services.ts";
import { loadStack } from "../stack/stack.ts";
import { builtIn, builtInNames, convert, type VariantLike } from "../types/value.ts";

/** Most nodes that are listed. */
export const mostNodes = 100_000;
export const objects = "i=85";

/**
 * Yields nodes from Objects down, parents before children. The session is temporary; so is the certificate, unless the
 * target names an agent's folder.
 * Without `security` it connects in clear text if the server permits it and no password is exposed: it reads only and
 * stores nothing. Rejects like `open`, and with `CONFIG_INVALID` for an invalid target.
 */
export async function* browseOpcua(
  target: BrowseTarget,
  runtime: Runtime,
  signal: AbortSignal,
): AsyncGenerator<BrowsedNode> {
  const { services, namespaces, resources } = await openBrowser(target, runtime, signal);
  await using _ = resources;
  yield* walk(services, namespaces, signal);
}

/** A session for browsing. Disposing `resources` ends it. Rejects like `browseOpcua`. */
export async function openBrowser(target: BrowseTarget, runtime: Runtime, signal: AbortSignal) {
  const { stack, options, linkOptions, offered, resources } = await lookAt(target, runtime, signal);
  await using opened = resources;
  const { pki } = linkOptions;
  // With an agent's folder, browsing is as secure as the agent's sources.
  const none = target.sharedDir === undefined ? ({ mode: "none" } as const) : undefined;
  const open: OpcuaOptions = { ...options, security: options.security ?? none };
  const endpoint = attempt(() => chooseEndpoint(offered, open)) ?? chooseEndpoint(offered, options);
  const { serverCertificate: certificate } = endpoint;
  const shown = certificateIn(certificate);
  // The user has compared this thumbprint.
  if (shown && target.trust !== undefined && isCalled(shown, target.trust))
    await pki.store.trustCertificate(certificate);
  await verifyServer(endpoint, linkOptions);
  const link = await openLink(stack, linkOptions, endpoint, runtime.log, signal);
  opened.defer(() => link.close());
  const facts = await readFacts(link, signal);
  return { services: new Services(link, facts.limits), namespaces: facts.namespaces, resources: opened.move() };
}

/** The server's endpoints, and the resources needed to connect to it. */
async function lookAt(target: BrowseTarget, runtime: Runtime, signal: AbortSignal) {
  await using resources = new AsyncDisposableStack();
  const stack = await loadStack(runtime.log);
  const temporaryDir = await mkdtemp(join(tmpdir(), "tagferry-browse-"));
  resources.defer(() => rm(temporaryDir, { recursive: true, force: true }));
  const pki = resources.use(await openPki(stack, await certificatesOf(target, temporaryDir)));
  const options = optionsOf(target);
  const linkOptions = { name: "browse", agent: "browse", options, pki, identity: await identityOf(stack, options) };
  await assertReachable(options.url, options.timeout, signal);
  const offered = await discover(stack, linkOptions, signal);
  return { stack, options, linkOptions, offered, resources: resources.move() };
}

/** The agent's certificates if the target names an agent, otherwise temporary ones. */
async function certificatesOf(target: BrowseTarget, temporaryDir: string): Promise<PkiOptions> {
  const { agent = "browse", sharedDir, configFile } = target;
  if (sharedDir === undefined)
    return { agent, dir: temporaryDir, remedy: (thumbprint) => `tagferry browse … --trust ${thumbprint}` };
  const { dir, forbidden } = await probePlace(sharedDir, temporaryDir);
  return { agent, dir, configFile, remedy: remedyIn(forbidden) };
}

/** Lists the endpoints with their security. Rejects like `browseOpcua`. */
export async function offeredEndpoints(
  target: BrowseTarget,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<readonly OfferedEndpoint[]> {
  const { offered, resources } = await lookAt({ url: target.url }, runtime, signal);
  await using _ = resources;
  return offered.map((endpoint) => {
    const warning = weaknessOf(endpoint);
    const { endpointUrl, serverCertificate } = endpoint;
    const certificate = serverCertificate?.length ? new X509Certificate(serverCertificate) : undefined;
    return {
      address: endpointUrl ?? target.url,
      security: securityOf(endpoint),
      secure: isSecure(endpoint),
      logins: loginsOf(endpoint),
      passwordInClear: passwordInClear(endpoint),
      ...(certificate && { certificate: thumbprintOf(certificate), ...described(certificate) }),
      ...(warning !== undefined && { warning }),
    };
  });
}

function optionsOf(target: BrowseTarget): OpcuaOptions {
  const { url, username, password = "", userCertificate, security, options: source } = target;
  const parsed = opcuaOptions.safeParse({
    url,
    ...(userCertificate && { userCertificate }),
    ...(security && { security }),
    ...(username !== undefined && { username, password }),
    // A source that accepts this risk accepts it for browsing, too.
    ...(source?.allowInsecurePassword === true && { allowInsecurePassword: true }),
  });
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, message }) => `${path.join(".")} ${message}`);
  throw new AgentError("CONFIG_INVALID", faults.join("; "));
}

async function* walk(
  services: Services,
  namespaces: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<BrowsedNode> {
  const seen = new Set<string>();
  const unseen = (nodes: readonly Child[]) =>
    nodes.filter((node) => {
      const key = node.nodeId.toString();
      if (!isOffered(node) || seen.has(key)) return false;
      seen.add(key);
      return true;
    });
  /** The nodes, with their facts and children. One call reads the children of all nodes. */
  const level = async (children: readonly Child[]) => {
    const nodes = unseen(children);
    const ids = nodes.map(({ nodeId }) => nodeId);
    const below = await services.children(ids, signal);
    const facts = await factsOf(services, nodes, signal);
    return nodes.entries().map(([i, node]) => ({ node, below: below[i] ?? [], facts: facts[i] }));
  };
  const [roots = []] = await services.children([objects], signal);
  const path = [await level(roots)];
  for (let top = path.at(-1); top && seen.size < mostNodes; top = path.at(-1)) {
    const { value: next } = top.next();
    if (!next) {
      path.pop();
      continue;
    }
    const { node, below, facts } = next;
    const address = portableNodeId(node.nodeId.toString(), namespaces);
    yield { address, name: node.name, depth: path.length - 1, signal: {}, tag: { node: address }, ...facts };
    if (below.length > 0) path.push(await level(below));
  }
}

/** Value, type and description of each variable; nothing of an object. */
export async function factsOf(
  services: Services,
  nodes: readonly Child[],
  signal: AbortSignal,
): Promise<Partial<BrowsedNode>[]> {
  const variables = nodes.filter(({ variable }) => variable);
  const nodeIds = variables.map(({ nodeId }) => nodeId);
  const values = (await readValues(services, nodeIds, signal)).values();
  const described = variables.map(({ nodeId, name }) => ({ tag: 0 as TagId, captures: {}, address: name, nodeId }));
  const descriptions = (await describe(services, described, signal)).values();
  return nodes.map(({ variable }) => {
    if (!variable) return {};
    const value = values.next().value?.value;
    const converted = convert(value);
    const type = typeOf(value);
    const description = descriptions.next().value?.signal ?? {};
    return { ...("value" in converted && converted), ...(type && { type }), signal: description };
  });
}

/** Examples: `Double`, `Int32[]`, `Float[][]`. */
function typeOf(variant: VariantLike | null | undefined): string | undefined {
  if (!variant?.dataType) return undefined;
  const name = variant.dataType === builtIn.structure ? "Structure" : String(builtInNames[variant.dataType]);
  return name + "[]".repeat(variant.arrayType === 2 ? (variant.dimensions?.length ?? 2) : variant.arrayType);
}
