import description from "../../../package.json" with { type: "json" };
import type { Environment } from "../../config/files/environment.ts";

export function version(): string {
  return description.version;
}

/** How a user types a command: through npm if npm started this process, as in the repository. */
export function typedAs({ npm_lifecycle_event: script = "" }: Environment["variables"]): string {
  return ["tagferry", "demo"].includes(script) ? "npm run tagferry --" : "tagferry";
}
