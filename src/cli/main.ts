#!/usr/bin/env -S node --max-semi-space-size=1 --expose-gc --disable-sigusr1 --disallow-code-generation-from-strings --disable-proto=delete
// Starts the program. Only here may the process be ended.
import { enableCompileCache } from "node:module";

// Type stripping and parsing cost 11 ms a thousand lines; from the cache they cost a tenth.
enableCompileCache();
const { main } = await import("./program.ts");
process.exit(await main(process.argv.slice(2)));
