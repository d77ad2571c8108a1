// Which keys of a file have secrets as values, by their names alone: the file may be no YAML at all.

const secret = /pas+w|pass|pwd|secret|token|private|(?:api|access)_?key|^key$|^pw$|^psk$/i;
/** A key that says where a secret is. */
const place = /(?:file|env|url)$/i;

export function isSecretKey(name: string): boolean {
  return secret.test(name) && !isPlaceOfSecret(name);
}

export function isPlaceOfSecret(name: string): boolean {
  return place.test(name);
}

/** A key as it may be shown: `password:rope`, for want of a space, is one with its value in it. */
export function shownKey(key: string): string {
  const [name = ""] = key.split(":");
  return name !== key && isSecretKey(name) ? `${name}:***` : key;
}
