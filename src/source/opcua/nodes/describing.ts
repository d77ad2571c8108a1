// Reads what variables are, beside their values: all of them first, later those that are new or that the server says have
// changed.
import type { Runtime } from "../../../core/runtime.ts";
import type { Description } from "../../../core/source.ts";
import type { Services } from "../session/services.ts";
import type { Ua } from "../session/stack.ts";
import { describe } from "./description.ts";
import type { Item } from "./items.ts";

export interface DescribingOptions {
  readonly ua: Ua;
  readonly services: Services;
  readonly runtime: Runtime;
  readonly deliver: (descriptions: readonly Description[]) => void;
}

/** How long changes gather: a server that changes one variable changes others, too. */
const gatherMs = 1_000;

export class Describing {
  readonly #options: DescribingOptions;
  readonly #wanted = new Set<Item>();

  constructor(options: DescribingOptions) {
    this.#options = options;
  }

  /** To be described, or described again. */
  add(items: Iterable<Item>): void {
    for (const item of items) this.#wanted.add(item);
  }

  /** Describes what was added. Never rejects: values without a description are values, too. */
  async round(signal: AbortSignal): Promise<void> {
    const { ua, services, runtime, deliver } = this.#options;
    const items = [...this.#wanted];
    this.#wanted.clear();
    try {
      const descriptions = await describe(ua, services, items, signal);
      if (descriptions.length > 0) deliver(descriptions);
    } catch (error) {
      if (!signal.aborted) runtime.log.warn({ err: error }, "the server does not describe its variables");
    }
  }

  /** Describes what is added, until `signal` aborts. */
  async run(signal: AbortSignal): Promise<never> {
    for (;;) {
      await this.#options.runtime.clock.sleep(gatherMs, signal);
      if (this.#wanted.size > 0) await this.round(signal);
    }
  }
}
