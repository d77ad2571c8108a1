// A payload that is not what the configuration says it is.

/** The message says what is wrong, for people, in lower case: it becomes the `reason` of a reading. */
export class PayloadError extends Error {
  override readonly name = "PayloadError";
}

/** The beginning of a payload, printable, for messages. */
export function sample(payload: Buffer): string {
  const text = payload
    .subarray(0, 60)
    .toString("latin1")
    .replaceAll(/[^\x20-\x7e]/g, "·");
  return payload.length > 60 ? `${text}…` : text;
}
