// What the looks at the signals of the service have found, bounded, as status shows it.
import type { EpochMicros } from "../../core/point.ts";

export interface NamedReason {
  readonly input: string;
  readonly reason: string;
}

/** Many are counted and the first of them named. */
export interface Named {
  readonly count: number;
  readonly first: readonly NamedReason[];
}

export interface SignalWatchStatus {
  /** When all signals were compared last; undefined: not yet. */
  readonly checkedAt: EpochMicros | undefined;
  /** Why that does not succeed now, and what to do. */
  readonly error: { readonly message: string; readonly hint: string | undefined } | undefined;
  /** Found lost at the service or changed there since the start, and saved again. */
  readonly lost: number;
  readonly changed: number;
  /** Saving them again does not help: the service has them otherwise all the same. */
  readonly kept: Named;
  /** Input IDs that the service has and the configuration has not. Never touched. */
  readonly unconfigured: { readonly count: number; readonly first: readonly string[] };
  /** Undefined: nothing is published. */
  readonly items:
    | {
        /** Created or updated since the start. */
        readonly published: number;
        /** Not published: `reason` names what is missing. */
        readonly unfit: Named;
        /** Attributes that a person has changed, which stay. */
        readonly edited: Named;
        readonly refused: Named;
      }
    | undefined;
}

export interface Look {
  readonly at: EpochMicros;
  readonly lost: number;
  readonly changed: number;
  readonly kept: readonly NamedReason[];
  readonly unconfigured: readonly string[];
  readonly unfit: readonly NamedReason[];
  readonly edited: readonly NamedReason[];
  readonly published: number;
  readonly refused: readonly NamedReason[];
}

const mostNamed = 20;
const none: Named = { count: 0, first: [] };

export class SignalFindings {
  #status: SignalWatchStatus = {
    checkedAt: undefined,
    error: undefined,
    lost: 0,
    changed: 0,
    kept: none,
    unconfigured: { count: 0, first: [] },
    items: undefined,
  };

  status(): SignalWatchStatus {
    return this.#status;
  }

  /** Whether that is news. */
  failed(message: string, hint: string | undefined): boolean {
    const before = this.#status.error?.message;
    this.#status = { ...this.#status, error: { message, hint } };
    return before !== message;
  }

  /** Whether there are more Input IDs than before that are not configured. */
  done(look: Look, publishes: boolean): boolean {
    const { lost, changed, unconfigured, items } = this.#status;
    this.#status = {
      checkedAt: look.at,
      error: undefined,
      lost: lost + look.lost,
      changed: changed + look.changed,
      kept: named(look.kept),
      unconfigured: { count: look.unconfigured.length, first: look.unconfigured.slice(0, mostNamed) },
      items: publishes ? itemsOf(look, items?.published ?? 0) : undefined,
    };
    return look.unconfigured.length > unconfigured.count;
  }
}

function itemsOf({ unfit, edited, published, refused }: Look, before: number): SignalWatchStatus["items"] {
  return { published: before + published, unfit: named(unfit), edited: named(edited), refused: named(refused) };
}

function named(all: readonly NamedReason[]): Named {
  return { count: all.length, first: all.slice(0, mostNamed) };
}
