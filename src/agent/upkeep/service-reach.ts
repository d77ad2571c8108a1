// Whether the service accepts connections of this agent, so that in a cluster an agent delivers that reaches it.
//
//   holder    delivery fails   x x x  "not reached"                        lease released
//   another                           o o o  "reached"  ── heartbeat ──▶              takes the lease
//
// Nothing is examined while delivery works. If no agent reaches the service, the holder keeps the lease: passing it on
// would gain nothing, and would hide since when delivery fails.
import type { Runtime } from "../../core/runtime.ts";
import { repeat } from "../../lib/flow/repeat.ts";

export interface ServiceReachParts {
  /** Whether this agent delivers and reports that the service is unreachable. */
  readonly isFailing: () => boolean;
  /** Whether another agent of the cluster does not reach the service. */
  readonly isAsked: () => boolean;
  /** Whether the service accepts a connection now. Rejects with `signal.reason` only. */
  readonly connects: (signal: AbortSignal) => Promise<boolean>;
}

export type ServiceReach = ReturnType<typeof serviceReach>;

const everyMs = 5_000;
/** Equal results in a row that count: a service that restarts is there for one agent a little earlier than for another. */
const enough = 3;

export function serviceReach({ isFailing, isAsked, connects }: ServiceReachParts, runtime: Runtime) {
  /** Successes in a row, or failures as a negative number. */
  let streak = 0;
  const reaches = () => (Math.abs(streak) < enough ? undefined : streak > 0);

  async function examine(signal: AbortSignal): Promise<void> {
    const before = reaches();
    if (!isFailing() && !isAsked() && before !== false) {
      streak = 0;
      return;
    }
    const isThere = await connects(signal);
    streak = isThere ? Math.max(streak, 0) + 1 : Math.min(streak, 0) - 1;
    if (before !== false && reaches() === false)
      runtime.log.warn(
        { part: "cluster" },
        "this agent cannot reach the service; another one that can delivers instead",
      );
    if (before === false && isThere) runtime.log.info({ part: "cluster" }, "this agent can reach the service again");
  }

  const failure = "it is not examined any more whether the service can be reached";
  const examining = repeat(examine, { everyMs, first: "later", failure }, runtime);
  return {
    /** Undefined: not examined, or the latest results differ. */
    get reaches(): boolean | undefined {
      return reaches();
    },
    [Symbol.asyncDispose]: () => examining[Symbol.asyncDispose](),
  };
}
