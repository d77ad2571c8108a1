// What `tagferry browse --json` prints, read again. One document, or several after each other.
import { z } from "zod";
import type { BrowsedNode } from "../../core/source.ts";
import { type SecurityMode, securityModes } from "../../lib/security-mode.ts";
import { signalAttributes } from "../../wire/signal-view.ts";

const node = z.object({
  address: z.string(),
  name: z.string(),
  depth: z.int().min(0),
  // An integer that a JSON number would round was printed as a text.
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
const document = z.object({ url: z.string(), type: z.string(), security, nodes: z.array(node) });

export interface BrowsedDevice {
  readonly url: string;
  readonly type: string;
  /** As `browse` was told to look: the operator has decided. */
  readonly securityMode?: SecurityMode | undefined;
  readonly nodes: readonly BrowsedNode[];
}

/** Undefined: it is something else. */
export function browsedJson(text: string): readonly BrowsedDevice[] | undefined {
  try {
    // A brace in the first column ends a document, and one there begins the next.
    return text
      .trim()
      .split(/(?<=^\})\s+(?=^\{)/m)
      .map((part) => document.parse(JSON.parse(part)))
      .map(({ security: asked, ...device }) => ({ ...device, securityMode: asked?.mode }));
  } catch {
    return undefined;
  }
}
