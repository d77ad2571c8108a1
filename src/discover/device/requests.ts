// What a page may ask for. Every member is checked and bounded, since it comes from a network.
import { z } from "zod";
import { sourceName } from "../../config/format/file-schema.ts";
import { securityModes } from "../../lib/text/security-mode.ts";
import { browsedNode } from "../tags/browsed.ts";
import { longestInput } from "../tags/input-names.ts";

const text = (most: number) => z.string().max(most);
const key = text(2_000);
const look = text(64);
const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export const openRequest = z.strictObject({
  /** A configured source. Its address and login are those of the configuration. */
  source: text(64).optional(),
  url: text(2_000).optional(),
  username: text(500).optional(),
  password: text(1_000).optional(),
  securityMode: z.enum(securityModes).optional(),
  /** SHA-256 of a certificate that a person has compared. */
  trust: sha256.optional(),
  allowInsecurePassword: z.boolean().optional(),
});

export const closeRequest = z.strictObject({ look });

export const listRequest = z.strictObject({
  look,
  under: key.optional(),
  search: text(200).default(""),
  first: z.int().min(0).max(1_000_000).default(0),
  count: z.int().min(1).max(500).default(200),
});

export const valuesRequest = z.strictObject({ look, keys: z.array(key).max(500) });

const chosenNode = browsedNode.extend({
  path: z.array(text(1_000)).max(50),
  address: key,
  /** An Input ID that a person has typed. */
  input: z
    .string()
    .regex(/^[a-zA-Z0-9\-_:.#+/{}]+$/, { error: "has characters that an Input ID cannot have" })
    .max(longestInput)
    .optional(),
});

export const proposeRequest = z.strictObject({
  look,
  /** Name of a new source. Undefined: tags for a source that exists. */
  name: sourceName.optional(),
  /** A source that was written for this address before. Undefined: the source of the look. */
  source: sourceName.optional(),
  template: text(300).default("{path}"),
  nodes: z.array(chosenNode).min(1).max(5_000),
});

export const writeRequest = proposeRequest.extend({
  /** `base` and `result` of the proposal that the person has seen. */
  base: text(64),
  result: text(64),
});

export const trustRequest = z.strictObject({
  sha256,
  decision: z.enum(["accept", "reject"]),
});

export type OpenRequest = z.output<typeof openRequest>;
export type ProposeRequest = z.output<typeof proposeRequest>;
export type WriteRequest = z.output<typeof writeRequest>;
