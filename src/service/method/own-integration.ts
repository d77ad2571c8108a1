// The `integration` param of the integration methods: there, well-formed, and the caller's own.
import { integrationId } from "../../wire/signal-view.ts";
import type { MethodCall } from "../call/call.ts";
import { type Faults, RpcFault } from "../call/rpc-fault.ts";

/** Throws -32003 where a well-formed ID is another integration's; anything else wrong goes to `faults`. */
export function ownIntegration({ params, caller }: MethodCall, faults: Faults): string {
  const integration = anyIntegration(params, faults);
  if (integration !== caller.integration && !faults.any)
    throw new RpcFault("forbidden", {
      message: `Operation not permitted: these are the credentials of integration ${caller.integration}`,
    });
  return integration;
}

/** The `integration` param of the admin methods, which may name any integration. */
export function anyIntegration(params: MethodCall["params"], faults: Faults): string {
  const parsed = integrationId.safeParse(params["integration"]);
  if (parsed.success) return parsed.data;
  faults.addIssues("integration", parsed.error, params["integration"]);
  return "";
}
