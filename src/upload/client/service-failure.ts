// What an answer of the service that is no result means for a command that ends.
import { AgentError, isAgentError } from "../../core/errors.ts";
import { unreachable } from "../../core/unreachable.ts";
import type { Verdict } from "./rpc-client.ts";

/** It is what was sent that the service would not have: less of it, or something else, may go through. */
class RefusedRequest extends Error {}

export function isRefusal(error: unknown): error is AgentError {
  return isAgentError(error, "SERVICE_PROTOCOL") && error.cause instanceof RefusedRequest;
}

/** `what`: what was asked, and of whom. */
export function failureOf(what: string, verdict: Exclude<Verdict, { kind: "done" }>): AgentError {
  switch (verdict.kind) {
    case "throttled":
      return new AgentError("SERVICE_UNREACHABLE", `${what}: the service asks to wait`);
    case "unauthorized":
      return new AgentError("SERVICE_REFUSED", `${what}: ${verdict.reason}`);
    case "unavailable":
      if (isAgentError(verdict.cause, "SERVICE_UNTRUSTED")) return verdict.cause;
      // One that answers, though not as it should, has been reached.
      return new AgentError(
        verdict.answered || isAgentError(verdict.cause, "SERVICE_PROTOCOL")
          ? "SERVICE_PROTOCOL"
          : "SERVICE_UNREACHABLE",
        `${what}: ${verdict.cause.message}`,
        { cause: verdict.cause },
      );
    case "refused":
      return new AgentError("SERVICE_PROTOCOL", `${what}: ${verdict.reason}`, {
        cause: new RefusedRequest(verdict.reason),
      });
    case "partly":
      return new AgentError("SERVICE_PROTOCOL", `${what}: ${verdict.error.message}`);
    case "tooLarge":
      return new AgentError("SERVICE_PROTOCOL", `${what}: HTTP 413, the service takes no request so large`, {
        cause: new RefusedRequest("too large"),
      });
    default:
      return unreachable(verdict);
  }
}
