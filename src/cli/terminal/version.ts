// Version of the program, from its package.
import description from "../../../package.json" with { type: "json" };

export function version(): string {
  return description.version;
}
