// Opens a connection: certificate, endpoint, session, nodes, subscription, descriptions, in this order.
import { join } from "node:path";
import { epochMicros } from "../../../core/point.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { TagId } from "../../../core/source.ts";
import { numericNamespaces } from "../config/node-address.ts";
import type { OpcuaConfig } from "../config/options.ts";
import { HistoryMemory } from "../history/history-memory.ts";
import { Monitoring } from "../monitoring/monitoring.ts";
import { Positions } from "../monitoring/positions.ts";
import { planGroups, requestedCounts } from "../monitoring/publishing-group.ts";
import { handedOver, type NoSubscription, obtainSubscription, type Subscription } from "../monitoring/subscription.ts";
import { rememberNamespaces } from "../nodes/address-space.ts";
import { type Resolver, resolveTags, type Tag } from "../nodes/items.ts";
import { StructureTypes } from "../nodes/structure-types.ts";
import { connectionDigest, findEndpoint, noSecurity } from "../session/discovery.ts";
import { loginNeedsCertificate, passwordWarning, securityOf, weaknessOf } from "../session/endpoint.ts";
import { type Link, openLink } from "../session/link.ts";
import { identityOf } from "../session/login.ts";
import { openPki, pkiOf } from "../session/pki.ts";
import { Resumption } from "../session/resumption.ts";
import { type Product, partnerAdvice, profileOf, readFacts, readRedundantSet } from "../session/server-facts.ts";
import { Services } from "../session/services.ts";
import { loadStack, type Stack } from "../session/stack.ts";
import { certificateWarnings } from "../session/trust.ts";
import { OpcuaSource } from "./source.ts";

const certificateWarningMs = 30 * 86_400_000;

/** As `Driver.open`. */
export async function openOpcua(config: OpcuaConfig, runtime: Runtime, signal: AbortSignal): Promise<OpcuaSource> {
  signal.throwIfAborted();
  const { log } = runtime;
  const stack = await loadStack(log);
  await using resources = new AsyncDisposableStack();
  const { name, agent, options } = config;
  const pki = resources.use(await openPki(stack, pkiOf(config)));
  const linkOptions = { name, agent, options, pki, identity: await identityOf(stack, options) };
  const endpoint = await findEndpoint(stack, linkOptions, signal);
  const warnings: string[] = [];
  const weakness = weaknessOf(endpoint);
  if (weakness !== undefined) warnings.push(weakness);
  const exposed = passwordWarning(endpoint, options);
  if (exposed !== undefined) warnings.push(exposed);
  const { serverCertificate: certificate, server } = endpoint;
  if (certificate?.length && (endpoint.securityMode !== noSecurity || loginNeedsCertificate(endpoint, options)))
    warnings.push(...certificateWarnings(certificate, { applicationUri: server.applicationUri, url: options.url }));
  for (const warning of warnings) log.warn({ url: config.options.url, warning }, "insecure connection");
  if (pki.validTo.getTime() < Date.now() + certificateWarningMs)
    log.warn({ certificate: pki.certificateFile, validTo: pki.validTo.toISOString() }, "own certificate ends soon");
  const resumption = await Resumption.open(
    join(config.stateDir, "session.json"),
    connectionDigest(linkOptions, endpoint),
    log,
  );
  const link = await openLink(stack, linkOptions, endpoint, resumption, log, signal);
  // What failed on the way is tried again on the same session.
  resources.defer(() => (config.final?.() || resumption.guest ? link.close() : link.hangUp()));
  await resumption.remember({ session: link.session, attempts: 0 });
  const source = await begin(config, stack, link, resumption, resources, runtime, signal);
  resources.move();
  return new OpcuaSource({
    ...source,
    pki,
    details: {
      ...source.details,
      endpoint: endpoint.endpointUrl ?? config.options.url,
      security: securityOf(endpoint),
      session: sessionText(link.session.timeoutMs, config.options.session.timeout),
      ...(warnings.length > 0 && { warning: warnings.join("; ") }),
      certificate: pki.thumbprint,
      certificateValidTo: pki.validTo.toISOString().slice(0, 10),
    },
  });
}

async function begin(
  config: OpcuaConfig,
  stack: Stack,
  link: Link,
  resumption: Resumption,
  resources: AsyncDisposableStack,
  runtime: Runtime,
  signal: AbortSignal,
) {
  const { ua } = stack;
  const { log } = runtime;
  const facts = await readFacts(link, signal);
  const services = new Services(link, facts.limits);
  const tags = config.tags.map((tag, i) => [i as TagId, tag] as const satisfies readonly [TagId, Tag]);
  const used = tags.flatMap(([, tag]) => numericNamespaces(tag));
  const known = await rememberNamespaces(join(config.stateDir, "namespaces.json"), used, facts.namespaces).catch(
    (error: unknown) => {
      log.warn(
        { err: error },
        "the namespaces cannot be remembered; a server with others after a restart goes unnoticed",
      );
      return new Map<number, string>();
    },
  );
  const structures = new StructureTypes(stack.binary, services, log);
  const resolver: Resolver = { ua, services, structures, namespaces: facts.namespaces, known };
  const { items, unresolved, cut } = await resolveTags(tags, resolver, signal);
  for (const tag of cut) log.warn({ tag, limit: config.tags[tag]?.limit ?? 1_000 }, "more variables than the limit");
  const { options } = config;
  const { backfill } = options;
  const rates = items.length > 0 ? items : config.tags;
  const groups = planGroups(
    options,
    rates.map(({ every }) => every),
    facts.limits.itemsPerSubscription,
  );
  const since = runtime.clock.monotonic();
  const positionsFile = resumption.guest ? undefined : join(config.stateDir, "positions.json");
  const positions = resources.use(await Positions.open(positionsFile, log));
  const counts = (publishingMs: number) => requestedCounts(options, publishingMs);
  const obtaining = { link, facts, resumption, positions, counts, log };
  const subscriptions: Subscription[] = [];
  let none: NoSubscription | undefined;
  for (const { key, publishingMs } of options.mode === "poll" ? [] : groups) {
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
  const { limits } = facts;
  const monitoring = new Monitoring({
    link,
    limit: limits.monitor,
    options,
    resumption,
    subscriptions,
    orphans,
  });
  await monitoring.begin(items, unresolved, signal);
  const history = {
    maxGapMs: backfill === "off" ? undefined : backfill.maxGap,
    memory: resources.use(await HistoryMemory.open(join(config.stateDir, "history.json"))),
    serverStarted: facts.started === "" ? undefined : epochMicros(Date.parse(facts.started) * 1_000),
    limit: facts.limits.history,
  };
  // Of a set that is configured the watches know.
  const set = options.servers.length > 0 ? undefined : await readRedundantSet(link, services, options.url, signal);
  const advice = set && partnerAdvice(set, [], [options.url]);
  if (advice !== undefined) log.warn({ advice }, "the server has partners that are not configured");
  const profile = profileOf(facts.product);
  if (profile)
    log.info({ server: textOf(facts.product), weakness: profile.weakness }, "the server has a known weakness");
  log.info(
    {
      server: textOf(facts.product),
      items: monitoring.items().length,
      failed: monitoring.failures.length,
      ms: Math.round(runtime.clock.monotonic() - since),
      subscriptions: subscriptions.map(({ origin, publishingMs }) => `${origin}, ${publishingMs} ms`),
    },
    "subscribed",
  );
  return {
    config,
    link,
    resumption,
    positions,
    profile,
    runtime,
    resolver,
    monitoring,
    // What is polled for want of a subscription is subscribed to when there is one again.
    openAgain: subscriptions.length === 0 && none === "taken",
    history,
    tags,
    items,
    details: {
      product: textOf(facts.product),
      ...(profile && { weakness: profile.weakness }),
      ...(set?.support !== undefined && { redundancy: set.support }),
      ...(advice !== undefined && { advice }),
    },
  };
}

/** How long the server keeps the session of an agent that it cannot reach. */
function sessionText(givenMs: number, askedMs: number): string {
  return `${givenMs} ms${givenMs < askedMs ? ` (asked for ${askedMs} ms)` : ""}`;
}

function textOf({ name, version }: Product): string {
  return `${name} ${version}`.trim();
}
