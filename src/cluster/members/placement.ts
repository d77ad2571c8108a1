// Decides which agent reads a source that several agents can read.
//
//   run: preferHere on gw1, run: anywhere on gw2 and gw3
//
//   gw1 runs            gw1 reads
//   gw1 is gone         gw2 or gw3 reads, whichever gets the lease
//   gw1 is back         the current reader continues until gw1 has run for the hold-down; then gw1 reads
//   move SOURCE gw3     gw3 reads while it runs, regardless of preferences
//   drain gw1           gw1 reads nothing that another agent can read

/** An agent, as far as placement is concerned. */
export interface Candidate {
  readonly node: string;
  /** Sources that it can read: `run: anywhere` or `preferHere`. */
  readonly offers: readonly string[];
  /** Sources with `run: preferHere`. */
  readonly prefers: readonly string[];
  /** Milliseconds that it has been a member without a break. */
  readonly aliveMs: number;
  /** Whether the service accepts its connections. Undefined: not examined, as long as delivery works. */
  readonly reachesService?: boolean | undefined;
}

export interface Orders {
  readonly drained: ReadonlySet<string>;
  /** Target node by source. */
  readonly moves: ReadonlyMap<string, string>;
}

/** A returning agent must run this long before sources that others read are moved to it. */
export const holdDownMs = 60_000;

/** Whether `node` may take or keep the lease of `source`. `candidates`: members that are alive, with `node`. */
export function mayRead(
  source: string,
  { node, holds }: { readonly node: string; readonly holds: boolean },
  candidates: readonly Candidate[],
  { drained, moves }: Orders,
): boolean {
  const able = candidates.filter((one) => one.offers.includes(source));
  const ready = able.filter((one) => !drained.has(one.node));
  // If all are drained, one must still read the source.
  const willing = ready.length > 0 ? ready : able;
  const target = willing.find((one) => one.node === moves.get(source));
  if (target) return target.node === node;
  const preferring = willing.filter((one) => one.prefers.includes(source));
  const preferred = holds ? preferring.filter((one) => one.node === node || one.aliveMs >= holdDownMs) : preferring;
  return (preferred.length > 0 ? preferred : willing).some((one) => one.node === node);
}

/**
 * Whether `node` may take or keep the delivery lease. An agent that cannot reach the service leaves it to those that can.
 * If all are drained, one must still deliver.
 */
export function mayDeliver(node: string, candidates: readonly Candidate[], { drained }: Orders): boolean {
  const ready = candidates.filter((one) => !drained.has(one.node));
  const willing = ready.length > 0 ? ready : candidates;
  const own = willing.find((one) => one.node === node);
  return own !== undefined && (own.reachesService !== false || !willing.some((one) => one.reachesService === true));
}
