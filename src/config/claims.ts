// What only one source may use at a time, over all sources of one agent or of several.
import type { Claim } from "../core/source.ts";
import type { Issues, Place } from "./issue.ts";
import { childNode, type MapNode } from "./node.ts";

/** Which source claims what, by the key of the claim. */
export type Claims = Map<string, Place & { readonly agent: string; readonly source: string }>;

/** Enters the claims of a source. One that another source has entered is an error, or a warning where it is uncertain. */
export function enterClaims(
  entered: readonly Claim[],
  source: string,
  node: MapNode,
  { agent, claims, issues }: { readonly agent: string; readonly claims: Claims; readonly issues: Issues },
): void {
  for (const { key, field, message, hint, uncertain = false } of entered) {
    const place = childNode(node, field) ?? childNode(node, "url") ?? node;
    const first = claims.get(key);
    if (!first) claims.set(key, { at: place.at, path: place.path, agent, source });
    else
      issues[uncertain ? "warn" : "error"](
        { at: place.at, path: `${node.path}.${field}` },
        `${message}, as source ${first.source}${sameFile(first, place) ? "" : ` of agent ${first.agent} in ${first.at.file}`}`,
        hint,
      );
  }
}

function sameFile(a: Place, b: Place): boolean {
  return a.at.file === b.at.file;
}
