// The terms in which this agent delivers for its cluster: lease, request gate, and reader of the shared stream.
import { openStreamReader } from "../../buffer/jetstream/stream-reader.ts";
import type { KeyBucket, PointStream } from "../../cluster/connection/jetstream.ts";
import { acquireLease, deliveryLease } from "../../cluster/leases/lease.ts";
import { leaseGate } from "../../cluster/leases/request-gates.ts";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { repeat } from "../../lib/flow/repeat.ts";
import type { DeliveryTerm } from "./delivery.ts";

export interface ClusterTermsOptions {
  readonly stream: PointStream;
  readonly leases: KeyBucket;
  readonly state: KeyBucket;
  readonly node: string;
  readonly ttlMs: number;
  /** Interval between two requests of the slowest method. */
  readonly intervalMs: number;
  /** False: the operator has drained this agent, or only other agents reach the service. */
  readonly mayLead: () => boolean;
}

/** Interval of checking whether this agent may still deliver. */
const checkEveryMs = 500;

/** Resolves once this agent has the lease and the stream is open. Rejects with server errors or `signal.reason`. */
export async function openClusterTerm(
  { stream, leases, state, node, ttlMs, intervalMs, mayLead }: ClusterTermsOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Required<DeliveryTerm>> {
  await using opened = new AsyncDisposableStack();
  // A former holder whose entry is gone sends nothing: it renews the lease before each request.
  const lease = { bucket: leases, key: deliveryLease, node, ttlMs, ifMissing: "take" } as const;
  const term = await acquireLease(lease, runtime, signal, mayLead);
  opened.defer(() => term.release());
  const { generation } = term;
  const drained = new AbortController();
  const over = AbortSignal.any([term.signal, drained.signal]);
  const ending = AbortSignal.any([signal, over]);
  const reader = opened.use(
    await openStreamReader({ stream, state, generation }, runtime, ending).catch((cause: unknown) => {
      if (signal.aborted || !over.aborted) throw cause;
      throw new AgentError("CLUSTER_FENCED", "the term was over before the stream was open", { cause });
    }),
  );
  const reason = "the operator has drained this agent, or it does not reach the service";
  const obey = () => {
    if (!mayLead()) drained.abort(new Error(reason));
  };
  const failure = "it is not checked any more whether this agent may deliver";
  opened.use(repeat(obey, { everyMs: checkEveryMs, first: "now", failure }, runtime));
  const owned = opened.move();
  return {
    reader,
    gate: leaseGate(term, intervalMs, runtime.clock),
    signal: over,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
