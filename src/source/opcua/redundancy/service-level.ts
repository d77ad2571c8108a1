// Which server of a redundant set to use (OPC 10000-4, 6.6.2.4.2): ServiceLevel says how well each can serve, who is served well
// stays where it is, and which one is in use is remembered over connections and restarts.
import { createHash } from "node:crypto";
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { readStateFile, writeStateFile } from "../../../lib/state-file.ts";

/** Undefined: the server cannot be reached. */
export type ServiceLevel = number | undefined;

/** Sub-ranges of ServiceLevel: within one, servers are as good as each other, but for `degraded`. */
const noData = 1;
const degraded = 2;
const healthy = 200;

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
  if (level === undefined) return 0;
  if (level < noData) return 1;
  if (level < degraded) return 2;
  return level < healthy ? 3 : 4;
}

/** Whether `level` gives data at all. */
export function serves(level: ServiceLevel): boolean {
  return rankOf(level) >= 3;
}

export function isHealthy(level: ServiceLevel): boolean {
  return rankOf(level) === 4;
}

/**
 * The server to use. `servers` in the order of the configuration, at least one; `inUse`: url of the one that serves now;
 * `sinceMs`: for how long. The one in use stays unless another is better by a class, or clearly so among degraded ones.
 */
export function chooseServer(servers: readonly Choice[], inUse: string | undefined, sinceMs: number): string {
  const [first, ...others] = servers.toSorted(
    (a, b) => rankOf(b.level) - rankOf(a.level) || degree(b.level) - degree(a.level),
  );
  const best = first ?? others[0];
  if (!best) throw new RangeError("a redundant set has servers");
  const current = servers.find(({ url }) => url === inUse);
  if (!current) return best.url;
  const gain = rankOf(best.level) - rankOf(current.level);
  if (gain === 0 && degree(best.level) - degree(current.level) < worthwhile) return current.url;
  if (serves(current.level) && sinceMs < holdMs) return current.url;
  return best.url;
}

/** Healthy servers are as good as each other. */
function degree(level: ServiceLevel): number {
  return level !== undefined && rankOf(level) === 3 ? level : 0;
}

const record = z.object({ inUse: z.string(), since: z.number() });

/** Which server of the set is in use, over connections and restarts, and what each of them has to remember. */
export class RedundancyMemory {
  readonly #dir: string;
  #used: z.output<typeof record> | undefined;

  private constructor(dir: string, used: z.output<typeof record> | undefined) {
    this.#dir = dir;
    this.#used = used;
  }

  static async open(dir: string): Promise<RedundancyMemory> {
    return new RedundancyMemory(dir, await readStateFile(join(dir, "redundancy.json"), record));
  }

  get inUse(): string | undefined {
    return this.#used?.inUse;
  }

  sinceMs(now: number): number {
    return this.#used ? Math.max(0, (now - this.#used.since) / 1_000) : holdMs;
  }

  /** Folder of a server: its session and its namespaces are its own. */
  folder(url: string): string {
    return join(this.#dir, "servers", createHash("sha256").update(url).digest("hex").slice(0, 12));
  }

  /** From now on this one is used. It is told up to when values are stored, whoever they came from. */
  async use(url: string, now: number): Promise<void> {
    await mkdir(this.folder(url), { recursive: true, mode: 0o700 });
    const before = this.inUse;
    if (before === url) return;
    const historyOf = (server: string) => join(this.folder(server), "history.json");
    if (before !== undefined) await copyFile(historyOf(before), historyOf(url)).catch(() => {});
    this.#used = { inUse: url, since: now };
    await writeStateFile(join(this.#dir, "redundancy.json"), this.#used);
  }
}
