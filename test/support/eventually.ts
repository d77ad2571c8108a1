// Waits for an external condition with a limit, without assuming how long it takes.

/**
 * Resolves with the first result of `probe` that is neither undefined nor false. Rejects after `withinMs` with the last
 * result or error.
 */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  withinMs = Number(process.env.TAGFERRY_WITHIN_MS ?? 30_000),
): Promise<Exclude<T, undefined | false>> {
  const end = performance.now() + withinMs;
  let last: unknown;
  for (;;) {
    try {
      const result = await probe();
      if (result !== undefined && result !== false) return result as Exclude<T, undefined | false>;
      last = result;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) throw new Error(`did not come true within ${withinMs} ms`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
