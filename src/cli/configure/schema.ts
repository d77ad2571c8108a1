// `tagferry schema` and `tagferry config migrate`: the format of the configuration.
import { configJsonSchema } from "../../config/json-schema.ts";
import { loadConfig } from "../../config/load.ts";
import { configReference } from "../../config/reference.ts";
import { drivers } from "../../source/registry.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { visible } from "../terminal/text.ts";

export async function schema(
  { reference }: { readonly reference?: boolean },
  io: Pick<Console, "print">,
): Promise<ExitStatus> {
  io.print(
    reference === true ? configReference(drivers).trimEnd() : JSON.stringify(configJsonSchema(drivers), undefined, 2),
  );
  return exitStatus.done;
}

/** Rejects as `loadConfig` does. The file stays as it is. */
export async function migrateConfig(
  { config: file, json = false }: { readonly config: string; readonly json?: boolean },
  io: Pick<Console, "print" | "environment">,
): Promise<ExitStatus> {
  await loadConfig(file, io.environment);
  io.print(
    json
      ? JSON.stringify({ file, version: 1, migrated: false }, undefined, 2)
      : visible(`${file} has version 1, the present one: nothing to migrate`),
  );
  return exitStatus.done;
}
