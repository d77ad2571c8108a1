// A text that must not be shown: every way to print it gives `***`.

/** Holds a secret. Only `reveal` gives it; text, JSON and inspection show `***`. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The secret itself. Call it where it goes out on the wire, and nowhere else. */
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
