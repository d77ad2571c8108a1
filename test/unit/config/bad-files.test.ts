// Known mistakes in configurations and their error messages: fixtures/config/*.bad.yaml and *.bad.txt.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { complaints } from "../../support/config.ts";

const folder = join(import.meta.dirname, "../../fixtures/config");
const cases = readdirSync(folder).filter((name) => name.endsWith(".bad.yaml"));
const variables = { PASSWORD: "canary-7f3a", HOST: "canary-host", UNIT: "300" };

test.each(cases)("%s is refused with every error, its position and a remedy", async (name) => {
  const read = await complaints(readFileSync(join(folder, name)), variables);
  // Windows adds the drive to the path of a secret.
  const said = read.replaceAll(resolve("/run/secrets/mqtt"), "/run/secrets/mqtt");

  // `vitest -u` writes the current messages. Review the difference before committing it.
  await expect(`${said}\n`).toMatchFileSnapshot(join(folder, name.replace(/yaml$/, "txt")));
  expect(said).not.toMatch(/canary/);
});

test("there are at least 25 of them", () => {
  expect(cases.length).toBeGreaterThanOrEqual(25);
});
