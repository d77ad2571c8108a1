// Shares equal parts between tags, which saves a kilobyte for each of 100,000 tags.

/** Most distinct parts of a member. Members with more, such as topics, have little to share. */
const maxParts = 1_000;

export class SharedParts {
  /** The shared object, by member name and JSON. */
  readonly #parts = new Map<string, Map<string, object>>();

  /** A copy of `whole` that shares equal plain-data members with other copies. They must not be modified. */
  of<Whole extends object>(whole: Whole): Whole {
    // Spreading allocates only what the members need, unlike `Object.fromEntries`.
    const copy = { ...whole };
    for (const [name, member] of Object.entries(whole)) Reflect.set(copy, name, this.#shared(name, member));
    return copy;
  }

  #shared(name: string, member: unknown): unknown {
    if (typeof member !== "object" || member === null || !isPlain(member)) return member;
    let parts = this.#parts.get(name);
    if (!parts) this.#parts.set(name, (parts = new Map()));
    const key = JSON.stringify(member);
    const part = parts.get(key);
    if (part) return part;
    if (parts.size < maxParts) parts.set(key, member);
    return member;
  }
}

/** Whether JSON represents the value completely. */
function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "boolean" || typeof value === "string") return true;
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return value.every(isPlain);
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain);
}
