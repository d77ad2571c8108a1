// A non-transparent redundant set: reads the ServiceLevel of all servers, uses the best one (OPC 10000-4, 6.6.2.4), and
// remembers the choice.
import { createHash } from "node:crypto";
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { AgentError, reasonOf } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Source } from "../../../core/source.ts";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import { openPki, pkiOf } from "../certificates/pki.ts";
import type { OpcuaConfig } from "../config/options.ts";
import { openOpcua } from "../connection/open.ts";
import { findEndpoint, type LinkOptions } from "../session/client.ts";
import { openLink } from "../session/link.ts";
import { identityOf } from "../session/login.ts";
import { partnerAdvice, type RedundantSet, readRedundantSet } from "../session/server-facts.ts";
import { readValues, Services } from "../session/services.ts";
import { loadStack, type Stack } from "../stack/stack.ts";

const failOvers = {
  name: "source_opcua_fail_overs_total",
  help: "Changes to another server of a redundant set.",
  labels: ["source"],
} as const;

/** How long to wait for all answers if one server is healthy. */
const patienceMs = 3_000;
const compareEveryMs = 200;
const watchSessionMs = 60_000;

/** Contract: see `Driver.open`. For a source with `servers`. */
export async function openRedundant(config: OpcuaConfig, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  const { name, agent, options, stateDir, sharedDir = stateDir } = config;
  const { clock, log, metrics } = runtime;
  const stack = await loadStack(log);
  const memory = await openRedundancyMemory(stateDir);
  await using resources = new AsyncDisposableStack();
  const pki = resources.use(await openPki(stack, pkiOf(config)));
  const identity = await identityOf(stack, options);
  const watches = [...new Set([options.url, ...options.servers])].map((url) => {
    // After a broken connection, the server soon removes the session.
    const watched = { ...options, url, session: { timeout: watchSessionMs } };
    const link = { name: `${name}-watch`, agent, options: watched, pki, identity };
    return resources.use(watchServer(stack, link, runtime));
  });
  const watchOf = (url: string | undefined) => watches.find((watch) => watch.url === url);
  const choose = () => chooseServer(watches, memory.inUse, memory.sinceMs(clock.now()));
  const before = memory.inUse;
  await enoughKnown(watches, watchOf(before), runtime, signal);
  const url = choose();
  await memory.use(url, clock.now());
  const own = watchOf(url);
  log.info(
    { url, serviceLevel: own?.level, redundancy: own?.set.support, servers: watches.length },
    before === undefined || before === url ? "a server of the redundant set is used" : "failed over to another server",
  );
  if (before !== undefined && before !== url) metrics.counter(failOvers).add(1, { source: name });
  const used = { ...config, options: { ...options, url }, stateDir: memory.folder(url), sharedDir };
  const source = resources.use(await openOpcua(used, runtime, signal));
  const owned = resources.move();

  /** Aborts `leave` when another server should be used. */
  const decide = async (leave: AbortController, ending: AbortSignal) => {
    for (;;) {
      const next = choose();
      // If the server in use is unreachable, its connection decides, as it may bridge a short interruption.
      if (next !== url && own?.level !== undefined) {
        const message = `${url} is at service level ${own.level}, ${next} at ${watchOf(next)?.level}: going on there`;
        leave.abort(new AgentError("SOURCE_UNREACHABLE", message));
        return;
      }
      await clock.sleep(compareEveryMs, ending);
    }
  };
  return {
    get retainedBy() {
      return source.retainedBy;
    },
    recovery: source.recovery,
    addresses: source.addresses,
    check: (stop) => source.check(stop),
    async *deliveries(stop) {
      const leave = new AbortController();
      const ending = AbortSignal.any([stop, leave.signal]);
      const deciding = decide(leave, ending).catch((error: unknown) => {
        if (!isAbort(error, ending)) throw error;
      });
      try {
        // On a planned change of server, readings that have arrived are still delivered.
        yield* source.deliveries(ending);
        if (!stop.aborted) throw leave.signal.reason;
      } finally {
        leave.abort(new Error("the source ends"));
        await deciding;
      }
    },
    details() {
      const [uris, urls] = [watches.map(({ set }) => set.uri), watches.map((watch) => watch.url)];
      const advice = own && partnerAdvice(own.set, uris, urls);
      const levels = watches.map((watch) => `${watch.url} ${watch.level ?? watch.failure ?? "unreachable"}`);
      return {
        ...source.details(),
        server: url,
        "service levels": levels.join(", "),
        ...(own?.set.support !== undefined && { redundancy: own.set.support }),
        ...(advice !== undefined && { advice }),
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Resolves when a server can be chosen. A server that never answers must not delay the others. */
async function enoughKnown(
  watches: readonly ServerWatch[],
  inUse: ServerWatch | undefined,
  { clock }: Runtime,
  signal: AbortSignal,
): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += compareEveryMs) {
    if (watches.every(({ level, failure }) => level !== undefined || failure !== undefined)) return;
    // A server in use that is not healthy is compared with all others.
    if (isHealthy(inUse?.level)) return;
    if (waitedMs >= patienceMs && watches.some(({ level }) => isHealthy(level))) return;
    await clock.sleep(compareEveryMs, signal);
  }
}

/** Undefined if the server is unreachable. */
export type ServiceLevel = number | undefined;

/** Lower bounds of the ServiceLevel sub-ranges. Differences within a range count only if it is `degraded`. */
const ranges = { maintenance: 0, noData: 1, degraded: 2, healthy: 200 };
/** Minimum difference for a change between degraded servers. */
const worthwhile = 20;
/** Milliseconds between two changes, unless the server in use cannot serve at all. */
export const holdMs = 30_000;

/** Ranks from worst to best: unreachable, maintenance, no data, degraded, healthy. */
function rankOf(level: ServiceLevel): number {
  return level === undefined ? 0 : Object.values(ranges).filter((begin) => level >= begin).length;
}

function isHealthy(level: ServiceLevel): boolean {
  return level !== undefined && level >= ranges.healthy;
}

/**
 * `servers`: at least one, in configured order. `inUse`: URL of the current server, in use for `sinceMs`. It stays
 * unless another is in a better range, or clearly better while degraded.
 */
export function chooseServer(
  servers: readonly Readonly<Pick<Watched, "url" | "level">>[],
  inUse: string | undefined,
  sinceMs: number,
): string {
  const degree = (level: ServiceLevel = 0) => (level >= ranges.degraded && level < ranges.healthy ? level : 0);
  const [best] = servers.toSorted((a, b) => rankOf(b.level) - rankOf(a.level) || degree(b.level) - degree(a.level));
  if (!best) throw new RangeError("a redundant set has servers");
  const current = servers.find(({ url }) => url === inUse);
  if (!current) return best.url;
  const isSimilar = degree(best.level) - degree(current.level) < worthwhile;
  if (rankOf(best.level) === rankOf(current.level) && isSimilar) return current.url;
  const serves = (current.level ?? 0) >= ranges.degraded;
  return serves && sinceMs < holdMs ? current.url : best.url;
}

const record = z.object({ inUse: z.string(), since: z.number() });

/** Persists which server is in use, and provides a state folder for each. */
export async function openRedundancyMemory(dir: string) {
  const file = join(dir, "redundancy.json");
  let used = await readStateFile(file, record);
  /** Each server has its own session and namespaces. */
  const folder = (url: string) => join(dir, "servers", createHash("sha256").update(url).digest("hex").slice(0, 12));
  return {
    folder,
    get inUse(): string | undefined {
      return used?.inUse;
    },
    sinceMs: (now: number) => (used ? Math.max(0, (now - used.since) / 1_000) : holdMs),
    /** Selects a server, and copies to it the time up to which values of the previous one are stored. */
    async use(url: string, now: number): Promise<void> {
      await mkdir(folder(url), { recursive: true, mode: 0o700 });
      const before = used?.inUse;
      if (before === url) return;
      const historyOf = (server: string) => join(folder(server), "history.json");
      if (before !== undefined) await copyFile(historyOf(before), historyOf(url)).catch(() => {});
      used = { inUse: url, since: now };
      await writeStateFile(file, used);
    },
  };
}

/** NodeId of Server_ServiceLevel. */
const serviceLevel = 2267;
const readEveryMs = 1_000;
const retryEveryMs = 5_000;
/** Assumed level of a server that reports none. */
const assumedLevel = 255;

/** The state of a server. Both level and failure are undefined until it has answered or failed. */
interface Watched {
  readonly url: string;
  level: ServiceLevel;
  /** Why the level is unknown; undefined if it is known. */
  failure: string | undefined;
  set: RedundantSet;
}

/** Disposing ends the session. */
type ServerWatch = Readonly<Watched> & AsyncDisposable;

/** `link`: options with this server's address. */
function watchServer(stack: Stack, link: LinkOptions, { clock, log }: Runtime): ServerWatch {
  const ending = new AbortController();
  const { signal } = ending;
  const { url } = link.options;
  const none: RedundantSet = { support: undefined, uri: undefined, partners: [] };
  const watched: Watched = { url, level: undefined, failure: undefined, set: none };

  const readLevels = async (): Promise<never> => {
    const endpoint = await findEndpoint(stack, link, signal);
    const opened = await openLink(stack, link, endpoint, log, signal);
    try {
      const until = AbortSignal.any([signal, opened.lost]);
      const services = new Services(opened, { read: 1, browse: 1 });
      watched.set = await readRedundantSet(opened, services, url, until);
      for (;;) {
        const [answer] = await readValues(services, [serviceLevel], until);
        const level: unknown = answer?.value?.value;
        Object.assign(watched, { failure: undefined, level: typeof level === "number" ? level : assumedLevel });
        await clock.sleep(readEveryMs, until);
      }
    } finally {
      await opened.close();
    }
  };
  const watch = async () => {
    while (!signal.aborted) {
      try {
        await readLevels();
      } catch (error) {
        if (isAbort(error, signal)) return;
        const failure = reasonOf(error);
        // An operator should know of such faults, for example an untrusted certificate, before this server is needed.
        if (failure !== watched.failure)
          log.warn({ url, reason: failure }, "a server of the redundant set cannot be reached");
        Object.assign(watched, { failure, level: undefined });
        await clock.sleep(retryEveryMs, signal).catch(() => {});
      }
    }
  };
  const watching = watch();
  return Object.assign(watched, {
    async [Symbol.asyncDispose]() {
      ending.abort(new Error("the watch ends"));
      await watching;
    },
  });
}
