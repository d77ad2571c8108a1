// The generated files in config/ match the schemas.
import { join } from "node:path";
import { expect, test } from "vitest";
import { schema } from "../../../src/cli/configure/schema.ts";

const folder = join(import.meta.dirname, "../../../config");

async function printed(options: { reference?: boolean }): Promise<string> {
  const lines: string[] = [];
  await schema(options, { print: (line) => lines.push(line) });
  return `${lines.join("\n")}\n`;
}

// To regenerate: `npx vitest run -u --config test/vitest.config.ts test/unit/config/generated`
test("config/tagferry.schema.json is up to date", async () => {
  await expect(await printed({})).toMatchFileSnapshot(join(folder, "tagferry.schema.json"));
});

test("config/reference.md is up to date", async () => {
  await expect(await printed({ reference: true })).toMatchFileSnapshot(join(folder, "reference.md"));
});
