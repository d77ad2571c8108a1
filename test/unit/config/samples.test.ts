// The sample files in config/ are right, and without a warning.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { complaints } from "../../support/config.ts";

const folder = join(import.meta.dirname, "../../../config");
const samples = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
const variables = { SERVICE_PASSWORD: "a", MQTT_PASSWORD: "b", LINE3_PASSWORD: "c" };

test.each(samples)("%s is right and begins with the line for editors", async (name) => {
  const text = readFileSync(join(folder, name), "utf8");
  expect(await complaints(text, variables)).toBe("");
  expect(text).toMatch(/^# yaml-language-server: \$schema=\.\/tagferry\.schema\.json\n/);
});
