// Which server of a redundant set to use (OPC 10000-4, 6.6.2.4.2): ServiceLevel says how well each can serve, who is served well
// stays where it is, and which one is in use is remembered over connections and restarts.
import { createHash } from "node:crypto";
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { readStateFile, writeStateFile } from "../../../lib/state-file.ts";

/** Undefined: the server cannot be reached. */
export type ServiceLevel = number | undefined;

/** Where the sub-ranges of ServiceLevel begin: within one, servers are as good as each other, but for degraded ones. */
const ranges = { maintenance: 0, noData: 1, degraded: 2, healthy: 200 };
/** Between degraded servers, so much makes a difference. */
const worthwhile = 20;
/** After a change the next one waits so long in milliseconds, unless the server in use cannot serve at all. */
export const holdMs = 30_000;

export interface Choice {
  readonly url: string;
  readonly level: ServiceLevel;
}

/** From worst to best: unreachable, maintenance, no data, degraded, healthy. */
function rankOf(level: ServiceLevel): number {
  return level === undefined ? 0 : Object.values(ranges).filter((begin) => level >= begin).length;
}

export function isHealthy(level: ServiceLevel): boolean {
  return level !== undefined && level >= ranges.healthy;
}

/**
 * The server to use. `servers` in the order of the configuration, at least one; `inUse`: url of the one that serves now;
 * `sinceMs`: for how long. The one in use stays unless another is better by a class, or clearly so among degraded ones.
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

/** Which server of the set is in use, over connections and restarts, and what each of them has to remember. */
export async function openRedundancyMemory(dir: string) {
  const file = join(dir, "redundancy.json");
  let used = await readStateFile(file, record);
  /** Folder of a server: its session and its namespaces are its own. */
  const folder = (url: string) => join(dir, "servers", createHash("sha256").update(url).digest("hex").slice(0, 12));
  return {
    folder,
    get inUse(): string | undefined {
      return used?.inUse;
    },
    sinceMs: (now: number) => (used ? Math.max(0, (now - used.since) / 1_000) : holdMs),
    /** This server is used from now on. It gets the time up to which values of any server are stored. */
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
