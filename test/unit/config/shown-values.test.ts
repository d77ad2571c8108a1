// The values that the page of the configuration shows: as written, with their place, or the default; never a secret.
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { processEnvironment } from "../../../src/config/files/environment.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

async function valuesOf(text: string): Promise<ReadonlyMap<string, string>> {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  writeFileSync(file, text);
  const { values = [], sources } = await loadConfig(file, { ...processEnvironment(), variables: { PLANT: "north" } });
  const all = [...values, ...sources.flatMap((source) => source.values ?? [])];
  return new Map(all.map(({ path, value, at }) => [path, `${value} ${at ? `line ${at.line}` : "default"}`]));
}

test("values are as written, references stay references, and defaults have their units", async () => {
  const values = await valuesOf(`version: 1
agent: { name: "\${PLANT}-gw1" }
service:
  url: https://service.example.com/v1
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: "\${SERVICE_PASSWORD:-canary-1}" } }
defaults: { report: { deadband: 0.5 } }
http: { token: canary-2-of-the-page, allowedHosts: [gw1.plant] }
otlp: { url: "http://collector:4318", headers: { authorization: canary-3 } }
sources:
  bus1:
    type: modbus
    url: tcp://10.0.0.5:502
    every: 2s
    tags: [{ input: a, at: "hr:0 u16" }]
  hall:
    type: mqtt
    url: mqtt://broker
    password: canary-4
    tags: [{ input: b, topic: b }]
`);
  expect(Object.fromEntries(values)).toMatchObject({
    "agent.name": "${PLANT}-gw1 line 2",
    "agent.unsyncedClock": "hold default",
    "service.auth.basic.password": "${SERVICE_PASSWORD:-***} line 6",
    "service.interval": "1s default",
    "buffer.maxSize": "2GiB default",
    "defaults.report.deadband": "0.5 line 7",
    "http.token": "*** line 8",
    "http.allowedHosts[0]": "gw1.plant line 8",
    "otlp.headers.authorization": "*** line 9",
    "sources.bus1.run": "here default",
    "sources.bus1.timeout": "1s default",
    "sources.bus1.every": "2s line 14",
    "sources.hall.password": "*** line 19",
  });
  expect([...values.keys()].filter((path) => path.includes("tags"))).toEqual([]);
  expect(JSON.stringify([...values])).not.toContain("canary");
});
