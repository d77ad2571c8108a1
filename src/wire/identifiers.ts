// Formats that the service requires of identifiers and keys.
import { z } from "zod";

/** Integration, signal and item IDs: 12 bytes in lower-case base32hex. */
export const resourceIdPattern = /^[a-v0-9]{20}$/;
/** Keys of labels and annotations. */
export const keyPattern = /^[A-Za-z0-9\-_/]{1,128}$/;
/** Keys of `enumValues`: 0 to 9999, no leading zeros. */
const enumKeyPattern = /^(?:0|[1-9]\d{0,3})$/;

export const integrationId = z
  .string()
  .regex(resourceIdPattern, { error: "must be an Integration ID: 20 characters of a-v and 0-9" });
export const itemId = z
  .string()
  .regex(resourceIdPattern, { error: "must be an Item ID: 20 characters of a-v and 0-9" });

export const labelKey = z.string().regex(keyPattern, { error: "key must be 1 to 128 characters of A-Z a-z 0-9 - _ /" });
export const enumKey = z
  .string()
  .regex(enumKeyPattern, { error: "key must be an integer from 0 to 9999 without leading zeros" });
