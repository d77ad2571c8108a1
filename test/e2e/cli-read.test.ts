// Reading data back from the service.
import { appendFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { integration, password, type TestService, testService } from "../support/service.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

test("the data of published inputs are printed, raw or rolled up, and unpublished ones are named", async () => {
  using home = temporaryFolder();
  await using service = await testService({ namespace: "acme" });
  const file = home.file("agent.yaml");
  const write = (secret: string, url = service.url) =>
    writeFileSync(
      file,
      `version: 1
agent: { dataDir: ${JSON.stringify(home.file("data"))} }
service: { url: "${url}", namespace: acme, integration: ${integration}, auth: { basic: { password: "\${PW:-${secret}}" } } }
`,
    );
  write(password);
  const minute = Math.floor(Date.now() / 60_000) - 10;
  const times = [0, 30, 60].map((s) => new Date(minute * 60_000 + s * 1_000).toISOString().replace(".000", ""));
  const series = { "hall.a": [1, 2.5, null], "-b": [null, null, -7], unpublished: [1, 1, 1] };
  const inserted = await service.call("integration.insert", { integration, data: { times, series } });
  const ids = inserted.body?.result?.["signalsByInput"] ?? {};
  const view = { type: "numeric", sourceType: "measurement" };
  await service.call("admin.publishSignals", {
    integration,
    itemsBySignal: { [ids["hall.a"].id]: { name: "A", ...view }, [ids["-b"].id]: { name: "B", ...view } },
  });

  const raw = await command(["read", "-c", file, "hall.a", "--", "-b"]);
  expect(raw).toMatchObject({ status: 0, stderr: "" });
  expect(raw.stdout.split("\n").toSorted()).toEqual(
    ["", "input,time,value", `hall.a,${times[0]},1`, `hall.a,${times[1]},2.5`, `'-b,${times[2]},-7`].toSorted(),
  );
  const rolled = await command(["read", "-c", file, "hall.a", "--rollup", "PT1M", "--format", "ndjson"]);
  expect(JSON.parse(rolled.stdout.split("\n")[0] ?? "")).toEqual({
    input: "hall.a",
    time: times[0],
    count: 2,
    min: 1,
    max: 2.5,
    sum: 3.5,
    avg: 1.75,
  });

  const others = await command(["read", "-c", file, "hall.a", "unpublished", "unknown"]);
  expect(others.status).toBe(1);
  expect(others.stdout).toContain(`hall.a,${times[0]},1\n`);
  expect(others.stderr).toBe(
    "tagferry: unpublished is not published, and only items can be read; tagferry signals publish makes them, or says what they miss\ntagferry: the service has no signal unknown, nor does the configuration name it\n",
  );
  appendFileSync(file, "sources: { d: { type: simulator, tags: [{ input: boiler.temp }] } }\n");
  expect(
    (await command(["read", "-c", file, "boiler.temp", "boiler.tmp"])).stderr,
  ).toBe(`tagferry: the service has no signal boiler.temp: it has one with the first points; tagferry status tells of delivery
tagferry: the service has no signal boiler.tmp, nor does the configuration name it; did you mean boiler.temp?
`);
  const badRollup = await command(["read", "-c", file, "hall.a", "--rollup", "often"]);
  expect(badRollup).toMatchObject({ status: 2, stderr: expect.stringContaining("--rollup often must be a duration") });
  write("wrong");
  expect(await command(["read", "-c", file, "hall.a"])).toMatchObject({ status: 77 });
  write(password, "http://127.0.0.1:1/v1");
  expect(await command(["read", "-c", file, "hall.a"])).toMatchObject({ status: 69 });
});

/** Publishes inputs with these points, and writes a configuration that reads them. */
async function published(
  service: TestService,
  home: TemporaryFolder,
  apiVersion: string,
  data: { times: readonly string[]; series: Record<string, readonly (number | null)[]> },
  views: Record<string, object> = {},
): Promise<string> {
  const inserted = await service.call("integration.insert", { integration, data });
  const ids: Record<string, { id: string }> = inserted.body?.result?.["signalsByInput"] ?? {};
  const itemsBySignal = Object.fromEntries(
    Object.entries(ids).map(([input, { id }]) => [
      id,
      { name: input, type: "numeric", sourceType: "measurement", ...views[input] },
    ]),
  );
  await service.call("admin.publishSignals", { integration, itemsBySignal });
  const file = home.file("agent.yaml");
  writeFileSync(
    file,
    `version: 1
agent: { dataDir: ${JSON.stringify(home.file("data"))} }
service: { url: "${service.url}", apiVersion: ${apiVersion}, integration: ${integration}, auth: { basic: { password: "${password}" } } }
`,
  );
  return file;
}

const ago = (ms: number) => new Date(Math.floor(Date.now() / 1_000) * 1_000 - ms).toISOString().replace(".000", "");
const minute = 60_000;

test.for(["1.0", "1.1beta1", "1.1"])("a part of the past is read, at version %s", async (version) => {
  using home = temporaryFolder();
  await using service = await testService();
  const times = [ago(110 * minute), ago(50 * minute), ago(45 * minute), ago(minute)];
  const file = await published(service, home, version, { times, series: { a: [1, 2, 3, 4] } });
  const some = await command(["read", "-c", file, "a", "--since", "1h", "--until", "40m"]);
  expect(some).toMatchObject({ status: 0, stderr: "", stdout: `input,time,value\na,${times[1]},2\na,${times[2]},3\n` });
  const window = await command(["read", "-c", file, "a", "--since", "2h", "--rollup", "window"]);
  expect(window.stdout.split("\n")[1]).toMatch(/^a,[^,]+,4,1,4,10,2.5$/);
  const months = await command(["read", "-c", file, "a", "--since", "2h", "--rollup", "P1M"]);
  if (version === "1.1") expect(months.stdout).toContain(",4,1,4,10,2.5\n");
  else expect(months).toMatchObject({ status: 2, stderr: expect.stringContaining("from version 1.1 on") });
});

test("a plot shows the points, or those that fit its width, and states at API 1.1", async () => {
  using home = temporaryFolder();
  await using service = await testService();
  const times = Array.from({ length: 100 }, (_, i) => ago(14_300 * minute - i * 8_000_000));
  const series = { ramp: times.map((_, i) => i), state: times.map((_, i) => i % 2), none: times.map(() => null) };
  const file = await published(
    service,
    home,
    "1.1",
    { times, series },
    { ramp: { engUnit: "°C" }, state: { type: "enum" } },
  );
  const drawn = await command([
    "read",
    "-c",
    file,
    "ramp",
    "state",
    "--since",
    "10d",
    "--format",
    "plot",
    "--width",
    "60",
  ]);
  expect(drawn).toMatchObject({ status: 0, stderr: "" });
  const lines = drawn.stdout.split("\n");
  expect(lines[0]).toBe("ramp in °C, 100 points");
  expect(lines[1]).toMatch(/^ +99 ┤.*[\u2801-\u28ff]$/u);
  expect(lines[10]).toMatch(/^ +0 ┤[\u2801-\u28ff]/u);
  expect(Math.max(...lines.map((line) => Array.from(line).length))).toBeLessThanOrEqual(60);
  expect(lines[14]).toBe("state, 100 points");
  const states = await command([
    "read",
    "-c",
    file,
    "state",
    "--since",
    "10d",
    "--rollup",
    "P1D",
    "--format",
    "ndjson",
  ]);
  expect(JSON.parse(states.stdout.split("\n")[1] ?? "")).toHaveProperty("secondsInState.1");
  const table = await command(["read", "-c", file, "state", "--since", "10d", "--rollup", "P1D"]);
  expect(table).toMatchObject({ status: 1, stderr: expect.stringContaining("is an enumeration") });
});
