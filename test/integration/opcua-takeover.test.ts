// Another agent continues an OPC UA source from the state of the former agent, with the former agent's certificate.
import { cpSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, opcuaServer } from "../support/opcua-server.ts";
import { collect, openTrusting } from "../support/opcua-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tags = [{ node: `nsu=${lineNamespace};s=Count` }];

test.each([
  ["without security the next agent continues the session and misses no value", "none", "kept"],
  [
    "with security the server transfers the subscription to the next agent, and no value is missing",
    "signAndEncrypt",
    "transferred",
  ],
])("%s", { timeout: 120_000 }, async (_, mode, subscription) => {
  using own = temporaryFolder();
  await using server = await opcuaServer({ folder: own.file("server"), secure: true });
  const setup = (agent: string) => ({
    stateDir: own.file(`${agent}/state`),
    sharedDir: own.file(`${agent}/shared`),
    identity: "plant",
    options: { url: server.url, security: { mode } },
    tags,
  });
  const values: number[] = [];
  const count = async (n: number) => {
    for (let i = 0; i < n; i++) {
      const value = 1_000 + values.length;
      values.push(value);
      server.set("Count", value);
      await eventually(() => server.counted.has(value));
    }
  };
  const former = setup("gw1");
  const next = setup("gw2");
  const line = collect(await openTrusting(former));
  await count(3);
  await eventually(() => values.every((value) => line.values(0).includes(value)));
  cpSync(former.stateDir, next.stateDir, { recursive: true });
  expect(readdirSync(next.stateDir)).toContain("session.json");
  // No agent reads now, as after a kill.
  await line[Symbol.asyncDispose]();
  await count(3);
  await using after = collect(await openTrusting(next));
  expect(after.source.details?.()).toMatchObject({ subscription });
  await count(1);
  await eventually(() => values.slice(3).every((value) => after.values(0).includes(value)), 30_000);
});
