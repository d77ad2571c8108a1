// Which keys of a file have secrets as values, by their names alone: the file may be no YAML at all.
import type { z } from "zod";
import { namesSecret, withoutSecrets } from "../lib/without-secrets.ts";
import { isSecret } from "./schema-walk.ts";

/** A key that says where a secret is. */
const place = /(?:file|env|url)$/i;
/** Below these keys every value may be a secret, except those of `harmless`. */
const credentials = /^(?:auth|basic|clientCredentials|credentials?|userCertificate)$/i;
const harmless = /^(?:basic|clientCredentials|username|clientId|apiUrl)$/;

export function isSecretKey(name: string): boolean {
  return namesSecret(name) && !place.test(name) && !credentials.test(name);
}

/** Whether what stands below may be a secret, whatever it is called. */
export function holdsCredentials(name: string): boolean {
  return credentials.test(name);
}

/** Whether a key below one that `holdsCredentials` has no secret as its value. */
export function isHarmless(name: string): boolean {
  return harmless.test(name) || place.test(name);
}

/**
 * Whether what stands at `path` (`sources.line.password[0]`) must not be shown. `schemas`: of this place; none where nothing may
 * stand there, as below a password that was written as a list, and the names alone have to tell.
 */
export function isHidden(path: string, schemas: readonly z.core.$ZodType[]): boolean {
  const names = path.split(/[.[\]]+/).filter((name) => name !== "" && !/^\d+$/.test(name));
  const last = names.at(-1) ?? "";
  if (schemas.length > 0) return schemas.some(isSecret) || holdsCredentials(last);
  return names.some(isSecretKey) || holdsCredentials(last) || (names.some(holdsCredentials) && !isHarmless(last));
}

/** A key as it may be shown: `password:rope`, for want of a space, is one with its value in it. */
export function shownKey(key: string): string {
  const [whole, name = ""] = /^([A-Za-z_][\w-]*)(?:["']?\s*[:=]\s*|\s+)\S/.exec(key) ?? [];
  return whole !== undefined && isSecretKey(name) ? `${name}:***` : withoutSecrets(key);
}

/** Whether the key that ends `path` may be a secret itself: nothing with a name of its own stands below a secret. */
export function isHiddenKey(path: string): boolean {
  return path
    .split(/[.[\]]+/)
    .slice(0, -1)
    .some(isSecretKey);
}
