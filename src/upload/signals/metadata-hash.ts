// One text and one short name for the same metadata, in whatever order their members stand.
import { hash } from "node:crypto";

/** JSON with the members of every object in order. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

export function hashOf(canonical: string): string {
  return hash("sha1", canonical, "base64url");
}
