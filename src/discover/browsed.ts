// Reads the JSON that `tagferry browse --json` prints. Pure.

import { z } from "zod";
import type { BrowsedNode } from "../core/commissioning.ts";
import { type SecurityMode, securityModes } from "../lib/text/security-mode.ts";
import { signalAttributes } from "../wire/signal-view.ts";

/** A node as JSON carries it. */
export const browsedNode = z.object({
  address: z.string(),
  name: z.string(),
  depth: z.int().min(0),
  // An integer beyond the exact range of JSON numbers was printed as a text.
  value: z
    .union([
      z.number(),
      z.boolean(),
      z.string().transform((text) => (/^-?\d{16,20}$/.test(text) ? BigInt(text) : text)),
    ])
    .exactOptional(),
  signal: signalAttributes.partial().default({}),
  tag: z.record(z.string(), z.unknown()),
});
const security = z.object({ mode: z.enum(securityModes) }).optional();
const document = z.object({ url: z.string(), type: z.string(), security, nodes: z.array(browsedNode) });

export interface BrowsedDevice {
  readonly url: string;
  readonly type: string;
  /** The mode with which the operator called `browse`. */
  readonly securityMode?: SecurityMode | undefined;
  readonly nodes: readonly BrowsedNode[];
}

/** Undefined: the text is not output of `browse`. */
export function browsedJson(text: string): readonly BrowsedDevice[] | undefined {
  try {
    // Documents begin and end with a brace in the first column.
    return text
      .trim()
      .split(/(?<=^\})\s+(?=^\{)/m)
      .map((part) => document.parse(JSON.parse(part)))
      .map(({ security: asked, ...device }) => ({ ...device, securityMode: asked?.mode }));
  } catch {
    return undefined;
  }
}
