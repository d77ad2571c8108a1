/** What `action` gives; undefined where it throws: for what is a courtesy, or says nothing when it fails. */
export function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
