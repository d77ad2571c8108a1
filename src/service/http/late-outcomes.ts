// Outcomes of writes whose clients were gone, or were told of a time-out, before there was one. When the same request
// comes again it gets that outcome in place of running once more, so that clients of a slow service get on.
//
// Requests are the same when integration, grants, version, method and all bytes from `params` on are: clients number their
// attempts. An outcome is given to one attempt, within ten minutes. It is in memory alone: after a restart the request
// runs again, which is safe, as writes can be repeated. A write of metadata ends the outcomes of those before it: who
// repeats one of them wants its values back. An insert ends none, as the inserts of a client run next to each other.
import type { Clock } from "../../core/runtime.ts";
import type { Method, ServedVersion } from "../../wire/method.ts";
import type { Caller } from "../call/params.ts";
import type { StoreAnswer } from "../worker/worker-thread.ts";

/** A write that runs or has run. */
export interface RunningCall {
  readonly method: Method | undefined;
  /** Text of the id in its answer. */
  readonly id: string;
  readonly answer: Promise<StoreAnswer>;
}

const keptMs = 600_000;
/** An answer to a full request has half a megabyte. */
const maxKept = 32;

export class LateOutcomes {
  readonly #clock: Clock;
  readonly #kept = new Map<string, RunningCall & { readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `call` is answered too late for its client. One that fails is not kept: it is to run again. */
  keep(key: string, call: RunningCall): void {
    const kept = { ...call, until: this.#clock.monotonic() + keptMs };
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size > maxKept) this.#kept.delete(oldest);
    const drop = () => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key);
    };
    call.answer.then(({ failure }) => failure === undefined || drop(), drop);
  }

  /**
   * The call that the same request began before, which is another's no longer; undefined where the request is to run
   * now. A notification has no key.
   */
  take(method: Method, key: string | undefined): RunningCall | undefined {
    const kept = key === undefined ? undefined : this.#kept.get(key);
    if (key !== undefined) this.#kept.delete(key);
    if (kept && kept.until > this.#clock.monotonic()) return kept;
    if (!isInsert(method)) for (const [other, call] of this.#kept) if (!isInsert(call.method)) this.#kept.delete(other);
    return undefined;
  }
}

function isInsert(method: Method | undefined): boolean {
  return method === "integration.insert";
}

/** Made on another thread: a full request takes 20 ms. */
export async function outcomeKey(
  body: Buffer<ArrayBuffer>,
  { integration, grants }: Caller,
  version: ServedVersion,
  method: Method,
): Promise<string> {
  const from = Math.max(0, body.indexOf('"params"'));
  const digest = await crypto.subtle.digest("SHA-256", body.subarray(from));
  return [integration, grants.toSorted().join(), version, method, Buffer.from(digest).toString("base64")].join(" ");
}

/** The answer with another id. */
export function withId(body: Uint8Array, from: string, to: string): Uint8Array {
  const head = (id: string) => Buffer.from(`{"jsonrpc":"2.0","id":${id},`);
  const old = head(from);
  return old.equals(body.subarray(0, old.length)) ? Buffer.concat([head(to), body.subarray(old.length)]) : body;
}
