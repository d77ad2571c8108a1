// Which agent reads a source that several of them could read.
//
//   run: preferHere on gw1, run: anywhere on gw2 and gw3
//
//   gw1 runs            gw1 reads
//   gw1 is gone         gw2 or gw3 reads, whichever gets the lease
//   gw1 is back         the one that reads goes on until gw1 has run for the hold-down; then gw1 reads
//   move SOURCE gw3     gw3 reads while it runs, whatever is preferred
//   drain gw1           gw1 reads nothing that another agent can read

/** What an agent says of itself, as far as it concerns sources. */
export interface Candidate {
  readonly node: string;
  /** Sources that it can read: `run: anywhere` or `preferHere`. */
  readonly offers: readonly string[];
  /** Of these, the ones with `run: preferHere`. */
  readonly prefers: readonly string[];
  /** How long it has been a member without a break, in milliseconds. */
  readonly aliveMs: number;
}

/** What operators have asked for. */
export interface Orders {
  /** Nodes that are to hold no leases. */
  readonly drained: ReadonlySet<string>;
  /** Node by source. */
  readonly moves: ReadonlyMap<string, string>;
}

/** An agent that is back must run for this long before sources are moved to it from one that reads them. */
export const holdDownMs = 60_000;

/**
 * Whether `node` may take the lease of `source`, or keep it where it holds it. `candidates`: the members that are alive,
 * `node` among them. A source that another agent reads changes to a preferred one only after the hold-down.
 */
export function mayRead(
  source: string,
  { node, holds }: { readonly node: string; readonly holds: boolean },
  candidates: readonly Candidate[],
  { drained, moves }: Orders,
): boolean {
  const able = candidates.filter((one) => one.offers.includes(source));
  const ready = able.filter((one) => !drained.has(one.node));
  // With all of them drained, one still has to read it.
  const willing = ready.length > 0 ? ready : able;
  const target = willing.find((one) => one.node === moves.get(source));
  if (target) return target.node === node;
  const preferring = willing.filter((one) => one.prefers.includes(source));
  const preferred = holds ? preferring.filter((one) => one.node === node || one.aliveMs >= holdDownMs) : preferring;
  return (preferred.length > 0 ? preferred : willing).some((one) => one.node === node);
}
