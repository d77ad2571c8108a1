import { access } from "node:fs/promises";

/** False also if the path cannot be looked up. */
export async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
