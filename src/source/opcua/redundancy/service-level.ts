// Which server of a redundant set to use (OPC 10000-4, 6.6.2.4.2): ServiceLevel says how well each can serve, and who is served
// well stays where it is. Pure.

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
