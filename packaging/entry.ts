// `main.js` of the built program. A shell hands Node its flags, which an old Node does not know; an old Node is told to
// leave; any other loads the program. One file that is a shell script, CommonJS and an ES module.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { nodeFlags } from "../src/cli/shared/node-flags.ts";

const guard = join(resolve(import.meta.dirname, ".."), "src/cli/supported-node.cjs");

/** The file that `main.js` loads, next to it. */
export const startFile = "start.js";

/** The text of `main.js`. */
export function entryText(): string {
  return `#!/bin/sh
":" //; case "$(node --version)" in v2[4-9].*|v[3-9][0-9].*) exec node ${nodeFlags.join(" ")} "$0" "$@";; *) exec node "$0" "$@";; esac
${readFileSync(guard, "utf8").trim()}
var fileSystem = process.getBuiltinModule("node:fs");
var entry = fileSystem.realpathSync(process.argv[1]);
process.getBuiltinModule("node:module").createRequire(entry)("./${startFile}");
`;
}
