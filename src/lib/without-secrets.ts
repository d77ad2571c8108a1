// Removes secrets from text that is shown: recognises names of secrets, and strips credentials from addresses.

const secretName =
  /pas+w|pass|pwd|secret|token|private|credential|signature|(?:api|access)_?key|^(?:key|pw|psk|sig|sas|auth|authorization)$/i;

/** Whether a key of a file, or a parameter of an address, has a secret as its value, by its name alone. */
export function namesSecret(name: string): boolean {
  return secretName.test(name);
}

/** `gw:rope@` with a scheme or without. A password may hold an `@` itself, or a `/` by mistake. */
const user = /(\/\/)\S{1,4000}@|(?<![^\s"'([{<,=])[^\s"'([{<,=:]{0,200}:(?!\/\/)\S{0,4000}@/g;
/** `?token=rope` */
const parameter = /([?&;#])([^\s=&;?#]+)=[^\s&;#"']+/g;

/** Whether a name or password stands in the address. */
export function holdsUser(address: string): boolean {
  return address.search(user) >= 0;
}

/** `text` without names and passwords in the addresses in it, nor parameters that are secrets by their names. */
export function withoutSecrets(text: string): string {
  return text.replace(user, "$1***@").replace(parameter, hideParameter);
}

/** As `withoutSecrets`, of a text that is nothing but one value: whatever stands before an `@` may be a secret, spaces included. */
export function shownValue(text: string): string {
  return withoutSecrets(text.replace(/^(.*?\/\/)?.*@/s, "$1***@"));
}

function hideParameter(whole: string, before: string, name: string): string {
  return namesSecret(name) ? `${before}${name}=***` : whole;
}
