// Opens a connection in this order: certificate, endpoint, session, nodes, subscriptions, descriptions.
import { join } from "node:path";
import type { EndpointDescription } from "node-opcua-client";
import { epochMicros } from "../../../core/point.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { TagId } from "../../../core/source.ts";
import { openPki, pkiOf } from "../certificates/pki.ts";
import { certificateWarnings } from "../certificates/trust.ts";
import { numericNamespaces } from "../config/node-address.ts";
import type { OpcuaConfig, OpcuaOptions } from "../config/options.ts";
import { openHistoryMemory } from "../history/history-memory.ts";
import { openMonitoring } from "../monitoring/monitoring.ts";
import { alike } from "../monitoring/subscription-items.ts";
import { type Resolver, rememberNamespaces, resolveTags, type Tag } from "../nodes/items.ts";
import { structureTypes } from "../nodes/structure-types.ts";
import { openPositions } from "../publishing/positions.ts";
import { planGroups, requestedCounts } from "../publishing/publishing-group.ts";
import { handedOver, type NoSubscription, obtainSubscription, type Subscription } from "../publishing/subscription.ts";
import { connectionDigest, findEndpoint, userDigest } from "../session/client.ts";
import { loginNeedsCertificate, modes, passwordWarning, securityOf, weaknessOf } from "../session/endpoint.ts";
import { openLink } from "../session/link.ts";
import { identityOf } from "../session/login.ts";
import { openResumption } from "../session/resumption.ts";
import { overflowWeakness, partnerAdvice, readFacts, readRedundantSet } from "../session/server-facts.ts";
import { Services } from "../session/services.ts";
import { loadStack, type Stack } from "../stack/stack.ts";
import { type OpcuaSource, type OpcuaSourceOptions, opcuaSource } from "./source.ts";

const certificateWarningMs = 30 * 86_400_000;

/** Contract: see `Driver.open`. */
export async function openOpcua(config: OpcuaConfig, runtime: Runtime, signal: AbortSignal): Promise<OpcuaSource> {
  signal.throwIfAborted();
  const { log } = runtime;
  const stack = await loadStack(log);
  await using resources = new AsyncDisposableStack();
  const { name, agent, options } = config;
  const pki = resources.use(await openPki(stack, pkiOf(config)));
  const linkOptions = { name, agent, options, pki, identity: await identityOf(stack, options) };
  const endpoint = await findEndpoint(stack, linkOptions, signal);
  const warnings = warningsAbout(endpoint, options);
  for (const warning of warnings) log.warn({ url: options.url, warning }, "insecure connection");
  const validTo = pki.validTo.toISOString();
  if (pki.validTo.getTime() < runtime.clock.now() / 1_000 + certificateWarningMs)
    log.warn({ certificate: pki.certificateFile, validTo }, "own certificate ends soon");
  const digest = connectionDigest(linkOptions, endpoint);
  const user = config.identity === undefined ? undefined : userDigest(linkOptions, endpoint);
  const resumption = await openResumption(join(config.stateDir, "session.json"), digest, log, user);
  const link = await openLink(stack, linkOptions, endpoint, log, signal, resumption);
  // If a later step fails, the next attempt resumes this session.
  resources.defer(() => (config.final?.() ? link.close() : link.hangUp()));
  await resumption.remember({ session: link.session, attempts: 0 });
  const [givenMs, askedMs] = [link.session.timeoutMs, options.session.timeout];
  const details = {
    endpoint: endpoint.endpointUrl ?? options.url,
    security: securityOf(endpoint),
    // How long the server keeps the session while the agent is unreachable.
    session: `${givenMs} ms${givenMs < askedMs ? ` (asked for ${askedMs} ms)` : ""}`,
    ...(warnings.length > 0 && { warning: warnings.join("; ") }),
    certificate: pki.thumbprint,
    certificateValidTo: validTo.slice(0, 10),
  };
  const source = await begin({ config, runtime, stack, pki, link, resumption, resources, details }, signal);
  resources.move();
  return source;
}

/** Security weaknesses of a connection that the configuration requires. */
function warningsAbout(endpoint: EndpointDescription, options: OpcuaOptions): string[] {
  const { serverCertificate: certificate, server, securityMode } = endpoint;
  const warnings = [weaknessOf(endpoint), passwordWarning(endpoint, options)].filter((each) => each !== undefined);
  if (certificate?.length && (securityMode !== modes.none || loginNeedsCertificate(endpoint, options)))
    warnings.push(...certificateWarnings(certificate, options.url, server.applicationUri));
  return warnings;
}

interface Connected extends Pick<OpcuaSourceOptions, "config" | "runtime" | "pki" | "link" | "resumption" | "details"> {
  readonly stack: Stack;
  readonly resources: AsyncDisposableStack;
}

async function begin(connected: Connected, signal: AbortSignal): Promise<OpcuaSource> {
  const { config, runtime, stack, link, resumption, resources } = connected;
  const { options, stateDir } = config;
  const { clock, log } = runtime;
  const facts = await readFacts(link, signal);
  const { limits, namespaces, started } = facts;
  const services = new Services(link, limits);
  const tags = config.tags.map((tag, i) => [i as TagId, tag] as const satisfies readonly [TagId, Tag]);
  const used = tags.flatMap(([, tag]) => numericNamespaces(tag));
  const known = await rememberNamespaces(join(stateDir, "namespaces.json"), used, namespaces).catch(
    (error: unknown) => {
      log.warn(
        { err: error },
        "the namespaces cannot be remembered; a server with others after a restart goes unnoticed",
      );
      return new Map<number, string>();
    },
  );
  const structures = structureTypes(stack.binary, services, log);
  const resolver: Resolver = { ua: stack.ua, services, structures, namespaces, known };
  const { items, unresolved, cut } = await resolveTags(tags, resolver, signal);
  for (const tag of cut) log.warn({ tag, limit: config.tags[tag]?.limit ?? 1_000 }, "more variables than the limit");
  const rates = (items.length > 0 ? alike(items).flatMap(([first]) => first ?? []) : config.tags).map(
    ({ every }) => every,
  );
  const groups = options.mode === "poll" ? [] : planGroups(options, rates, limits.itemsPerSubscription);
  const since = clock.monotonic();
  const positions = resources.use(await openPositions(join(stateDir, "positions.json"), log, config));
  const counts = (publishingMs: number) => requestedCounts(options, publishingMs);
  const obtaining = { link, facts, resumption, positions, counts, log };
  const subscriptions: Subscription[] = [];
  let none: NoSubscription | undefined;
  for (const { key, publishingMs } of groups) {
    const subscription = await obtainSubscription(obtaining, key, publishingMs, signal);
    if (typeof subscription !== "string") subscriptions.push(subscription);
    else {
      none = subscription;
      log.warn({ why: none, subscriptions: subscriptions.length }, "the server gives no more subscriptions");
      break;
    }
  }
  const kept = subscriptions.map(({ group }) => group);
  const orphans = kept.length === 0 ? [] : await handedOver(obtaining, kept, signal);
  await positions.begin(
    subscriptions.filter(({ origin }) => origin !== "kept"),
    subscriptions.filter(({ origin }) => origin === "kept"),
  );
  const monitoring = openMonitoring({ link, limit: limits.monitor, options, resumption, subscriptions, orphans });
  await monitoring.begin(items, unresolved, signal);
  const history = {
    maxGapMs: options.backfill === "off" ? undefined : options.backfill.maxGap,
    memory: resources.use(await openHistoryMemory(join(stateDir, "history.json"))),
    serverStarted: started === "" ? undefined : epochMicros(Date.parse(started) * 1_000),
    limit: limits.history,
  };
  // The server watches already know the members of a configured set.
  const set = options.servers.length > 0 ? undefined : await readRedundantSet(link, services, options.url, signal);
  const advice = set && partnerAdvice(set, [], [options.url]);
  if (advice !== undefined) log.warn({ advice }, "the server has partners that are not configured");
  const weakness = overflowWeakness(facts.product);
  const product = `${facts.product.name} ${facts.product.version}`.trim();
  if (weakness !== undefined) log.info({ server: product, weakness }, "the server has a known weakness");
  log.info(
    {
      server: product,
      items: monitoring.items().length,
      failed: monitoring.failures.length,
      ms: Math.round(clock.monotonic() - since),
      subscriptions: subscriptions.map(({ origin, publishingMs }) => `${origin}, ${publishingMs} ms`),
    },
    "subscribed",
  );
  return opcuaSource({
    ...connected,
    positions,
    hidesOverflows: weakness !== undefined,
    resolver,
    monitoring,
    // While all subscriptions are taken, the agent polls and reconnects later to subscribe.
    lacksSubscription: subscriptions.length === 0 && none === "taken",
    history,
    tags,
    items,
    details: {
      product,
      ...(weakness !== undefined && { weakness }),
      ...(set?.support !== undefined && { redundancy: set.support }),
      ...(advice !== undefined && { advice }),
      ...connected.details,
    },
  });
}
