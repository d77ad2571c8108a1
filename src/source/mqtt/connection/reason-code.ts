// Descriptions of MQTT reason codes for the operator.
import { z } from "zod";
import { credentialsHint, type ErrorCode } from "../../../core/errors.ts";

/** Text, error code, and a hint if that of the error code does not fit. */
type Meaning = readonly [text: string, code: ErrorCode, hint?: string];

const otherClientId = "set clientId to one that the broker accepts; each client needs its own";
const otherAddress = "ask the operator of the broker for its new address, and set url";
const brokerLimit = "raise this limit at the broker, or subscribe to fewer topics or a lower rate";
const notThere = "wait, or look at the broker: it answers, so address and port are right";
const brokerVersion = "leave protocolVersion at auto, or set it to a version that the broker speaks";
const unsupported = "the broker lacks this; see the capabilities that its documentation lists";

/** Return codes of CONNACK in MQTT 3.1 and 3.1.1, and reason codes of CONNACK, SUBACK and DISCONNECT in MQTT 5. */
const meanings: Readonly<Record<number, Meaning>> = {
  1: ["it does not speak this version of MQTT", "SOURCE_PROTOCOL", brokerVersion],
  2: ["it does not accept the client identifier", "SOURCE_REFUSED", otherClientId],
  3: ["it is not available", "SOURCE_UNREACHABLE", notThere],
  4: ["bad user name or password", "SOURCE_REFUSED", credentialsHint],
  5: ["not authorized", "SOURCE_REFUSED", credentialsHint],
  128: ["unspecified error", "SOURCE_PROTOCOL"],
  129: ["malformed packet", "SOURCE_PROTOCOL"],
  130: ["protocol error", "SOURCE_PROTOCOL"],
  131: ["an internal error of the broker", "SOURCE_PROTOCOL"],
  132: ["it does not speak this version of MQTT", "SOURCE_PROTOCOL", brokerVersion],
  133: ["it does not accept the client identifier", "SOURCE_REFUSED", otherClientId],
  134: ["bad user name or password", "SOURCE_REFUSED", credentialsHint],
  135: ["not authorized", "SOURCE_REFUSED", credentialsHint],
  136: ["it is not available", "SOURCE_UNREACHABLE", notThere],
  137: ["it is busy", "SOURCE_UNREACHABLE", notThere],
  138: ["this client is banned", "SOURCE_REFUSED", "ask the operator of the broker why this client is banned"],
  139: ["it is shutting down", "SOURCE_UNREACHABLE", notThere],
  140: ["bad authentication method", "SOURCE_REFUSED", credentialsHint],
  141: ["no packet within the keep-alive time", "SOURCE_UNREACHABLE", notThere],
  142: ["another client took over the session with the same client identifier", "SOURCE_TAKEN_OVER"],
  143: ["it does not accept the topic filter", "SOURCE_REFUSED", "correct topic in the tags"],
  144: ["it does not accept the topic name", "SOURCE_REFUSED", "correct topic in the tags"],
  147: ["more messages in flight than agreed", "SOURCE_PROTOCOL", brokerLimit],
  149: ["packet too large", "SOURCE_PROTOCOL", brokerLimit],
  150: ["message rate too high", "SOURCE_REFUSED", brokerLimit],
  151: ["quota exceeded", "SOURCE_REFUSED", brokerLimit],
  152: [
    "an administrator ended the connection",
    "SOURCE_REFUSED",
    "ask the operator of the broker why the connection was ended",
  ],
  153: ["payload format invalid", "SOURCE_PROTOCOL"],
  154: ["it does not support retained messages", "SOURCE_REFUSED", unsupported],
  155: ["it does not support this QoS", "SOURCE_REFUSED", unsupported],
  156: ["another server is to be used", "SOURCE_REFUSED", otherAddress],
  157: ["the server has moved", "SOURCE_REFUSED", otherAddress],
  158: ["it does not support shared subscriptions", "SOURCE_REFUSED", unsupported],
  159: ["too many connections in a short time", "SOURCE_UNREACHABLE", notThere],
  160: ["the connection reached its maximum time", "SOURCE_UNREACHABLE", notThere],
  161: ["it does not support subscription identifiers", "SOURCE_REFUSED", unsupported],
  162: ["it does not support wildcards in subscriptions", "SOURCE_REFUSED", unsupported],
};

/** Example of `text`: `not authorized (135)`. No `hint`: that of the error code fits. */
export function meaningOf(reason: number) {
  const [text = "a reason unknown to us", code = "SOURCE_PROTOCOL", hint] = meanings[reason] ?? [];
  return { text: `${text} (${reason})`, code, hint };
}

/** Whether the broker requires another protocol version. */
export function wantsOtherVersion(reason: number): boolean {
  return reason === 1 || reason === 132;
}

/** The codes of a SUBACK for which the library threw `error`. */
export function grantedCodes(error: unknown): readonly number[] | undefined {
  return refusal.safeParse(error).data?.packet.granted;
}

const refusal = z.object({ packet: z.object({ granted: z.array(z.number()) }) });
