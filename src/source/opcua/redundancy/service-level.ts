// Reads the ServiceLevel of the servers of a redundant set, selects one by it (OPC 10000-4, 6.6.2.4.2), and remembers
// the choice.
import { createHash } from "node:crypto";
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { reasonOf } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import type { LinkOptions } from "../session/client.ts";
import { findEndpoint } from "../session/discovery.ts";
import { openLink } from "../session/link.ts";
import { type RedundantSet, readRedundantSet } from "../session/server-facts.ts";
import { readValues, Services } from "../session/services.ts";
import type { Stack } from "../stack/stack.ts";

/** Undefined if the server is unreachable. */
export type ServiceLevel = number | undefined;

/** Lower bounds of the ServiceLevel sub-ranges. Differences within a range count only if it is `degraded`. */
const ranges = { maintenance: 0, noData: 1, degraded: 2, healthy: 200 };
/** Minimum difference for a change between degraded servers. */
const worthwhile = 20;
/** Milliseconds between two changes, unless the server in use cannot serve at all. */
export const holdMs = 30_000;

export interface Choice {
  readonly url: string;
  readonly level: ServiceLevel;
}

/** Ranks from worst to best: unreachable, maintenance, no data, degraded, healthy. */
function rankOf(level: ServiceLevel): number {
  return level === undefined ? 0 : Object.values(ranges).filter((begin) => level >= begin).length;
}

export function isHealthy(level: ServiceLevel): boolean {
  return level !== undefined && level >= ranges.healthy;
}

/**
 * `servers`: at least one, in configured order. `inUse`: URL of the current server, in use for `sinceMs`. It stays
 * unless another is in a better range, or clearly better while degraded.
 */
export function chooseServer(servers: readonly Choice[], inUse: string | undefined, sinceMs: number): string {
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
export type ServerWatch = Readonly<Watched> & AsyncDisposable;

/** `link`: options with this server's address. */
export function watchServer(stack: Stack, link: LinkOptions, { clock, log }: Runtime): ServerWatch {
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
