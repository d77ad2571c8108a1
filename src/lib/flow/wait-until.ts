import type { Clock } from "../../core/runtime.ts";

/** True once `holds` is true, false after `withinMs`. Looks at once, then every `everyMs`. Rejects with `signal.reason`. */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  { withinMs, everyMs }: { readonly withinMs: number; readonly everyMs: number },
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const end = clock.monotonic() + withinMs;
  while (!(await holds())) {
    if (clock.monotonic() >= end) return false;
    await clock.sleep(everyMs, signal);
  }
  return true;
}
