// Secrets: removes them from displayed text, recognises their names, strips credentials from addresses, compares them.
import { createHash, timingSafeEqual } from "node:crypto";

const secretName =
  /pas+w|pass|pwd|secret|token|private|credential|signature|(?:api|access)[_-]?key|^(?:key|pw|psk|sig|sas|auth|authorization)$/i;

/** Whether the name of a key or URL parameter indicates a secret value. */
export function namesSecret(name: string): boolean {
  return secretName.test(name);
}

/** Matches `gw:rope@`, with or without a scheme. A password may contain `@`, or `/` by mistake. */
const user = /(\/\/)\S{1,4000}@|(?<![^\s"'([{<,=])[^\s"'([{<,=:]{0,200}:(?!\/\/)\S{0,4000}@/g;
/** Matches `?token=rope`. */
const parameter = /([?&;#])([^\s=&;?#]+)=[^\s&;#"']+/g;

/** Whether the address contains a user name or password. */
export function holdsUser(address: string): boolean {
  return address.search(user) >= 0;
}

/** `text` without credentials in addresses and without parameters whose names indicate a secret. */
export function withoutSecrets(text: string): string {
  return text.replace(user, "$1***@").replace(parameter, hideParameter);
}

/** As `withoutSecrets`, for a single value: everything before an `@` may be a secret, including spaces. */
export function shownValue(text: string): string {
  return withoutSecrets(text.replace(/^(.*?\/\/)?.*@/s, "$1***@"));
}

function hideParameter(whole: string, before: string, name: string): string {
  return namesSecret(name) ? `${before}${name}=***` : whole;
}

/** Compares two secrets in constant time, so that the duration reveals neither content nor length. */
export function sameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
