// What the broker's numbers mean, in words for an operator.
import { credentialsHint, type ErrorCode } from "../../../core/errors.ts";

interface Meaning {
  readonly text: string;
  readonly code: ErrorCode;
  /** What to do about it, where the hint of the code does not say it. */
  readonly hint?: string;
}

const otherClientId = "set clientId to one that the broker accepts; each client needs its own";
const otherAddress = "ask the operator of the broker for its new address, and set url";
const brokerLimit = "raise this limit at the broker, or subscribe to fewer topics or a lower rate";
const notThere = "wait, or look at the broker: it answers, so address and port are right";
const brokerVersion = "leave protocolVersion at auto, or set it to a version that the broker speaks";
const unsupported = "the broker lacks this; see the capabilities that its documentation lists";

/** Return codes of CONNACK in MQTT 3.1 and 3.1.1, and reason codes of CONNACK, SUBACK and DISCONNECT in MQTT 5. */
const meanings: Readonly<Record<number, Meaning>> = {
  1: { text: "it does not speak this version of MQTT", code: "SOURCE_PROTOCOL", hint: brokerVersion },
  2: { text: "it does not accept the client identifier", code: "SOURCE_REFUSED", hint: otherClientId },
  3: { text: "it is not available", code: "SOURCE_UNREACHABLE", hint: notThere },
  4: { text: "bad user name or password", code: "SOURCE_REFUSED", hint: credentialsHint },
  5: { text: "not authorized", code: "SOURCE_REFUSED", hint: credentialsHint },
  128: { text: "unspecified error", code: "SOURCE_PROTOCOL" },
  129: { text: "malformed packet", code: "SOURCE_PROTOCOL" },
  130: { text: "protocol error", code: "SOURCE_PROTOCOL" },
  131: { text: "an internal error of the broker", code: "SOURCE_PROTOCOL" },
  132: { text: "it does not speak this version of MQTT", code: "SOURCE_PROTOCOL", hint: brokerVersion },
  133: { text: "it does not accept the client identifier", code: "SOURCE_REFUSED", hint: otherClientId },
  134: { text: "bad user name or password", code: "SOURCE_REFUSED", hint: credentialsHint },
  135: { text: "not authorized", code: "SOURCE_REFUSED", hint: credentialsHint },
  136: { text: "it is not available", code: "SOURCE_UNREACHABLE", hint: notThere },
  137: { text: "it is busy", code: "SOURCE_UNREACHABLE", hint: notThere },
  138: {
    text: "this client is banned",
    code: "SOURCE_REFUSED",
    hint: "ask the operator of the broker why this client is banned",
  },
  139: { text: "it is shutting down", code: "SOURCE_UNREACHABLE", hint: notThere },
  140: { text: "bad authentication method", code: "SOURCE_REFUSED", hint: credentialsHint },
  141: { text: "no packet within the keep-alive time", code: "SOURCE_UNREACHABLE", hint: notThere },
  142: {
    text: "another client took over the session with the same client identifier",
    code: "SOURCE_TAKEN_OVER",
  },
  143: {
    text: "it does not accept the topic filter",
    code: "SOURCE_REFUSED",
    hint: "correct topic in the tags",
  },
  144: {
    text: "it does not accept the topic name",
    code: "SOURCE_REFUSED",
    hint: "correct topic in the tags",
  },
  147: { text: "more messages in flight than agreed", code: "SOURCE_PROTOCOL", hint: brokerLimit },
  149: { text: "packet too large", code: "SOURCE_PROTOCOL", hint: brokerLimit },
  150: { text: "message rate too high", code: "SOURCE_REFUSED", hint: brokerLimit },
  151: { text: "quota exceeded", code: "SOURCE_REFUSED", hint: brokerLimit },
  152: {
    text: "an administrator ended the connection",
    code: "SOURCE_REFUSED",
    hint: "ask the operator of the broker why the connection was ended",
  },
  153: { text: "payload format invalid", code: "SOURCE_PROTOCOL" },
  154: { text: "it does not support retained messages", code: "SOURCE_REFUSED", hint: unsupported },
  155: { text: "it does not support this QoS", code: "SOURCE_REFUSED", hint: unsupported },
  156: { text: "another server is to be used", code: "SOURCE_REFUSED", hint: otherAddress },
  157: { text: "the server has moved", code: "SOURCE_REFUSED", hint: otherAddress },
  158: { text: "it does not support shared subscriptions", code: "SOURCE_REFUSED", hint: unsupported },
  159: { text: "too many connections in a short time", code: "SOURCE_UNREACHABLE", hint: notThere },
  160: { text: "the connection reached its maximum time", code: "SOURCE_UNREACHABLE", hint: notThere },
  161: { text: "it does not support subscription identifiers", code: "SOURCE_REFUSED", hint: unsupported },
  162: { text: "it does not support wildcards in subscriptions", code: "SOURCE_REFUSED", hint: unsupported },
};

/** `not authorized (135)`. */
export function describeReason(code: number): string {
  return `${meanings[code]?.text ?? "a reason unknown to us"} (${code})`;
}

/** Which of our codes a refusal by the broker is. */
export function errorCodeOf(reason: number): ErrorCode {
  return meanings[reason]?.code ?? "SOURCE_PROTOCOL";
}

/** What to do about a refusal by the broker. Undefined: the hint of its code says it. */
export function hintOf(reason: number): { readonly hint?: string } {
  const { hint } = meanings[reason] ?? {};
  return hint === undefined ? {} : { hint };
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
