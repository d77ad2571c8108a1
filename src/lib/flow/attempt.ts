/** The result of `action`, or undefined if it throws. For optional actions whose failure has no consequence. */
export function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
