/** Holds a secret. Text, JSON and inspection show `***`; only `reveal` returns it. */
export class Secret {
  #text: string;
  /** Reads it again where it came from, such as a file. Resolves with undefined if that fails. */
  readAgain?: () => Promise<string | undefined>;

  constructor(text: string) {
    this.#text = text;
  }

  /** Takes over what its origin holds now. Without an origin, or if that cannot be read, it stays as it is. */
  async renew(): Promise<void> {
    this.#text = (await this.readAgain?.()) ?? this.#text;
  }

  /** The secret itself. Call it only where the secret is written to the wire. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return "***";
  }

  toJSON(): string {
    return "***";
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "***";
  }
}
