// Lets tags share the parts in which they do not differ: 100,000 tags with the same `value`, `time` and `signal` are
// 100,000 times the same objects otherwise, a kilobyte each.

/** Distinct parts of one member that are remembered; with more of them, as of topics, there is little to share. */
const maxParts = 1_000;

/** Shares parts among the objects given to it. One per load of a configuration. */
export class SharedParts {
  /** By name of a member and its JSON: the object that all members with this JSON share. */
  readonly #parts = new Map<string, Map<string, object>>();

  /**
   * A copy of `whole` whose members are shared with those of other objects that say the same. A member is shared if it is
   * plain data all through; functions, instances of classes and the like stay as they are. Nothing may change them later.
   */
  of<Whole extends object>(whole: Whole): Whole {
    // A copy by spreading has room for its members only, unlike an object that is made of entries.
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

/** Whether JSON says all there is to say: null, booleans, finite numbers, texts, and arrays and objects of these. */
function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "boolean" || typeof value === "string") return true;
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object") return false;
  if (Array.isArray(value)) return value.every(isPlain);
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isPlain);
}
