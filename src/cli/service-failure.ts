// What an answer of the service that is no result means for a command that ends.
import { AgentError } from "../core/errors.ts";
import { unreachable } from "../core/unreachable.ts";
import type { Verdict } from "../upload/rpc-client.ts";

/** `what`: what was asked, and of whom. */
export function failureOf(what: string, verdict: Exclude<Verdict, { kind: "done" }>): AgentError {
  switch (verdict.kind) {
    case "throttled":
      return new AgentError("SERVICE_UNREACHABLE", `${what}: the service asks to wait`);
    case "unauthorized":
      return new AgentError("SERVICE_REFUSED", `${what}: ${verdict.reason}`);
    case "unavailable":
      return new AgentError("SERVICE_UNREACHABLE", `${what}: ${verdict.cause.message}`, { cause: verdict.cause });
    case "refused":
      return new AgentError("SERVICE_PROTOCOL", `${what}: ${verdict.reason}`);
    case "partly":
      return new AgentError("SERVICE_PROTOCOL", `${what}: ${verdict.error.message}`);
    case "tooLarge":
      return new AgentError("SERVICE_PROTOCOL", `${what}: HTTP 413, the service takes no request so large`);
    default:
      return unreachable(verdict);
  }
}
