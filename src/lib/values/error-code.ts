/** The code of an error of Node, such as `ENOENT`. Undefined: it has none. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
