// Keeps the outcome of a write whose client disconnected or timed out before. If the same request is repeated, it gets
// that outcome instead of running again. Clients of a slow service thus make progress.
//
// Requests are the same if integration, grants, version, method and all bytes from `params` on are equal; the id may
// differ. An outcome serves one repetition within ten minutes. After a restart, the request runs again, which is safe
// because writes are idempotent. A metadata write discards kept outcomes of earlier ones, since a repetition must
// restore its values. An insert does not, since inserts run concurrently.
import type { Clock } from "../../core/runtime.ts";
import type { Method, ServedVersion } from "../../wire/method.ts";
import type { Caller } from "../call/params.ts";
import type { StoreAnswer } from "../worker/worker-thread.ts";

/** A write that is running or has ended. */
export interface RunningCall {
  readonly method: Method | undefined;
  /** The id in its response. */
  readonly id: string;
  readonly answer: Promise<StoreAnswer>;
}

const keptMs = 600_000;
/** A response to a full request takes half a megabyte. */
const maxKept = 32;

export function lateOutcomes(clock: Clock) {
  const outcomes = new Map<string, RunningCall & { readonly until: number }>();
  return {
    /** Keeps `call`, whose response is too late for its client. A failed call is dropped, so that it runs again. */
    keep(key: string, call: RunningCall): void {
      const kept = { ...call, until: clock.monotonic() + keptMs };
      outcomes.delete(key);
      outcomes.set(key, kept);
      const [oldest] = outcomes.keys();
      if (oldest !== undefined && outcomes.size > maxKept) outcomes.delete(oldest);
      const drop = () => {
        if (outcomes.get(key) === kept) outcomes.delete(key);
      };
      call.answer.then(({ failure }) => failure === undefined || drop(), drop);
    },
    /** Removes and returns the kept call of the same request. Undefined: the request must run, or has no key. */
    take(method: Method, key: string | undefined): RunningCall | undefined {
      const kept = key === undefined ? undefined : outcomes.get(key);
      if (key !== undefined) outcomes.delete(key);
      if (kept && kept.until > clock.monotonic()) return kept;
      if (!isInsert(method)) for (const [other, call] of outcomes) if (!isInsert(call.method)) outcomes.delete(other);
      return undefined;
    },
  };
}

function isInsert(method: Method | undefined): boolean {
  return method === "integration.insert";
}

/** Computed on another thread; a full request takes 20 ms. */
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

/** The response with another id. */
export function withId(body: Uint8Array, from: string, to: string): Uint8Array {
  const head = (id: string) => Buffer.from(`{"jsonrpc":"2.0","id":${id},`);
  const old = head(from);
  return old.equals(body.subarray(0, old.length)) ? Buffer.concat([head(to), body.subarray(old.length)]) : body;
}
