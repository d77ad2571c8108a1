// What the broker's numbers mean, in words for an operator.
import type { ErrorCode } from "../../core/errors.ts";

interface Meaning {
  readonly text: string;
  readonly code: ErrorCode;
}

/** Return codes of CONNACK in MQTT 3.1 and 3.1.1, and reason codes of CONNACK, SUBACK and DISCONNECT in MQTT 5. */
const meanings: Readonly<Record<number, Meaning>> = {
  1: { text: "it does not speak this version of MQTT", code: "SOURCE_PROTOCOL" },
  2: { text: "it does not accept the client identifier", code: "SOURCE_REFUSED" },
  3: { text: "it is not available", code: "SOURCE_UNREACHABLE" },
  4: { text: "bad user name or password", code: "SOURCE_REFUSED" },
  5: { text: "not authorized", code: "SOURCE_REFUSED" },
  128: { text: "unspecified error", code: "SOURCE_PROTOCOL" },
  129: { text: "malformed packet", code: "SOURCE_PROTOCOL" },
  130: { text: "protocol error", code: "SOURCE_PROTOCOL" },
  131: { text: "an error of its implementation", code: "SOURCE_PROTOCOL" },
  132: { text: "it does not speak this version of MQTT", code: "SOURCE_PROTOCOL" },
  133: { text: "it does not accept the client identifier", code: "SOURCE_REFUSED" },
  134: { text: "bad user name or password", code: "SOURCE_REFUSED" },
  135: { text: "not authorized", code: "SOURCE_REFUSED" },
  136: { text: "it is not available", code: "SOURCE_UNREACHABLE" },
  137: { text: "it is busy", code: "SOURCE_UNREACHABLE" },
  138: { text: "this client is banned", code: "SOURCE_REFUSED" },
  139: { text: "it is shutting down", code: "SOURCE_UNREACHABLE" },
  140: { text: "bad authentication method", code: "SOURCE_REFUSED" },
  141: { text: "it heard nothing within the keep-alive time", code: "SOURCE_UNREACHABLE" },
  142: {
    text: "another client took over the session with the same client identifier",
    code: "SOURCE_TAKEN_OVER",
  },
  143: { text: "it does not accept the topic filter", code: "SOURCE_REFUSED" },
  144: { text: "it does not accept the topic name", code: "SOURCE_REFUSED" },
  147: { text: "more messages in flight than agreed", code: "SOURCE_PROTOCOL" },
  149: { text: "packet too large", code: "SOURCE_PROTOCOL" },
  150: { text: "message rate too high", code: "SOURCE_REFUSED" },
  151: { text: "quota exceeded", code: "SOURCE_REFUSED" },
  152: { text: "an administrator ended the connection", code: "SOURCE_REFUSED" },
  153: { text: "payload format invalid", code: "SOURCE_PROTOCOL" },
  154: { text: "it does not support retained messages", code: "SOURCE_REFUSED" },
  155: { text: "it does not support this QoS", code: "SOURCE_REFUSED" },
  156: { text: "another server is to be used", code: "SOURCE_REFUSED" },
  157: { text: "the server has moved", code: "SOURCE_REFUSED" },
  158: { text: "it does not support shared subscriptions", code: "SOURCE_REFUSED" },
  159: { text: "too many connections in a short time", code: "SOURCE_UNREACHABLE" },
  160: { text: "the connection reached its maximum time", code: "SOURCE_UNREACHABLE" },
  161: { text: "it does not support subscription identifiers", code: "SOURCE_REFUSED" },
  162: { text: "it does not support wildcards in subscriptions", code: "SOURCE_REFUSED" },
};

/** `not authorized (135)`. */
export function describeReason(code: number): string {
  return `${meanings[code]?.text ?? "a reason unknown to us"} (${code})`;
}

/** Which of our codes a refusal by the broker is. */
export function errorCodeOf(reason: number): ErrorCode {
  return meanings[reason]?.code ?? "SOURCE_PROTOCOL";
}

/** Whether the broker asks for another version of the protocol. */
export function wantsOtherVersion(reason: number): boolean {
  return reason === 1 || reason === 132;
}

/** The codes of a SUBACK that the library made an error of. */
export function grantedCodes(error: unknown): readonly number[] | undefined {
  if (!(error instanceof Error) || !("packet" in error)) return undefined;
  const packet = error.packet;
  if (typeof packet !== "object" || packet === null || !("granted" in packet)) return undefined;
  return Array.isArray(packet.granted) ? packet.granted.filter((code) => typeof code === "number") : undefined;
}
