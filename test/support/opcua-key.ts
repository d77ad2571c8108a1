// Puts a key where one would be made, so that the tests need not wait for it.
import { copyFile, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** Of `agent` or `server`, in a folder with certificates that has no key yet. */
export async function putKey(whose: "agent" | "server", folder: string): Promise<void> {
  const keys = join(folder, "own/private");
  if (await stat(join(folder, "own")).catch(() => undefined)) return;
  await mkdir(keys, { recursive: true, mode: 0o700 });
  await copyFile(join(import.meta.dirname, `../fixtures/opcua/${whose}-key.pem`), join(keys, "private_key.pem"));
}
