// The sample files in config/ and the one for containers are valid and cause no warning.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { complaints } from "../../support/config.ts";

const folder = join(import.meta.dirname, "../../../config");
/** Prometheus rules are not a tagferry configuration. */
const samples = readdirSync(folder).filter((name) => name.endsWith(".yaml") && name !== "alerts.yaml");
const compose = join(folder, "../packaging/compose");
const variables = { SERVICE_PASSWORD: "a", MQTT_PASSWORD: "b", LINE3_PASSWORD: "c", AGENT_NAME: "gw1" };

test.each(samples)("%s is valid and begins with the line for editors", async (name) => {
  const text = readFileSync(join(folder, name), "utf8");
  expect(await complaints(text, variables)).toBe("");
  expect(text).toMatch(/^# yaml-language-server: \$schema=\.\/tagferry\.schema\.json\n/);
});

test.each([
  ["tagferry.yaml", 5],
  ["tagferry.cluster.yaml", 6],
])("%s in packaging/compose is right", async (name, line) => {
  const text = readFileSync(join(compose, name), "utf8").replaceAll(/\$\{file:[^}]*\}/g, "${SERVICE_PASSWORD}");
  // The service and the NATS servers are in the same container network.
  expect(await complaints(text, variables)).toMatch(
    new RegExp(
      `^agent\\.yaml:${line}:8 {2}warning: service\\.url {2}is not encrypted: .*\\n.*\\n +${line} \\| .*\\n +\\| +\\^${name.includes("cluster") ? "\\nagent\\.yaml:\\d+:12 {2}warning: cluster\\.servers {2}is not encrypted: [^]*" : ""}$`,
    ),
  );
});
