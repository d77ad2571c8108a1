// `tagferry schema`: the JSON Schema of the configuration, or its reference.
import { configJsonSchema } from "../../config/json-schema.ts";
import { configReference } from "../../config/reference.ts";
import { drivers } from "../../source/registry.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";

export async function schema(
  { reference }: { readonly reference?: boolean },
  io: Pick<Console, "print">,
): Promise<ExitStatus> {
  io.print(
    reference === true ? configReference(drivers).trimEnd() : JSON.stringify(configJsonSchema(drivers), undefined, 2),
  );
  return exitStatus.done;
}
