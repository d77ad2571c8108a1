// Ends a connection that does without a subscription because all were taken: the next one may get one.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";

/** How long it is polled meanwhile. */
const withoutSubscriptionMs = 300_000;

/** Rejects with `SOURCE_UNREACHABLE` when the time has come, or with `signal.reason`. */
export async function openAgain({ clock }: Pick<Runtime, "clock">, signal: AbortSignal): Promise<never> {
  await clock.sleep(withoutSubscriptionMs, signal);
  throw new AgentError("SOURCE_UNREACHABLE", "all subscriptions of the server were taken: looking for one again");
}
