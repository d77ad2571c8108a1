// `tagferry schema` and `tagferry config migrate`: the format of the configuration.

import { loadConfig } from "../../config/load.ts";
import { configJsonSchema } from "../../config/reference/json-schema.ts";
import { configReference } from "../../config/reference/reference.ts";
import { visible } from "../../lib/text/visible.ts";
import { drivers } from "../../source/registry.ts";
import type { ConfigOptions } from "../shared/arguments.ts";
import type { Console } from "../terminal/console.ts";
import { printResult } from "../terminal/text.ts";

export async function schema({ reference }: { readonly reference?: boolean }, io: Pick<Console, "print">) {
  io.print(reference ? configReference(drivers).trimEnd() : JSON.stringify(configJsonSchema(drivers), undefined, 2));
}

/** Rejects as `loadConfig` does. Does not change the file. */
export async function migrateConfig(options: ConfigOptions, io: Console): Promise<void> {
  const { config: file } = options;
  await loadConfig(file, io.environment);
  const lines = () => [visible(`${file} has version 1, the present one: nothing to migrate`)];
  printResult(options, { file, version: 1, migrated: false }, lines, io);
}
