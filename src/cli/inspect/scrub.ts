// The last net under a support bundle: secrets that are known are taken out of every text, in whatever form they stand.
import { Secret } from "../../core/secret.ts";

/** Shorter ones would take half of the text along. */
const shortest = 4;

/** Every secret inside of `value`, however deep. */
export function secretsIn(value: unknown, found: Set<string> = new Set(), seen: Set<unknown> = new Set()): Set<string> {
  if (value instanceof Secret) found.add(value.reveal());
  else if (typeof value === "object" && value !== null && !seen.has(value)) {
    seen.add(value);
    for (const inner of Object.values(value)) secretsIn(inner, found, seen);
  }
  return found;
}

/** Replaces each of them by `***`: as it is, in base64, in hexadecimal, as in an address and as in JSON. */
export function scrubber(secrets: Iterable<string>): (text: string) => string {
  const forms = new Set<string>();
  for (const secret of secrets) {
    if (secret.length < shortest) continue;
    const bytes = Buffer.from(secret);
    const base64 = bytes.toString("base64");
    const json = JSON.stringify(secret).slice(1, -1);
    const all = [secret, base64, base64.replace(/=+$/, ""), bytes.toString("base64url"), bytes.toString("hex")];
    all.push(bytes.toString("hex").toUpperCase());
    for (const form of [...all, encodeURIComponent(secret), json]) forms.add(form);
  }
  if (forms.size === 0) return (text) => text;
  // The longest first: one secret may begin another.
  const ordered = [...forms].toSorted((a, b) => b.length - a.length);
  const any = new RegExp(ordered.map((form) => form.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g");
  return (text) => text.replace(any, "***");
}
