// What comes back when data are read from the service.
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test("the data of published inputs are printed, whole or rolled up, and others are named", async () => {
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
    "tagferry: unpublished is not published: only items made of signals can be read\ntagferry: the service has no signal unknown\n",
  );
  const badRollup = await command(["read", "-c", file, "hall.a", "--rollup", "often"]);
  expect(badRollup).toMatchObject({ status: 1, stderr: expect.stringContaining("rollup") });
  write("wrong");
  expect(await command(["read", "-c", file, "hall.a"])).toMatchObject({ status: 77 });
  write(password, "http://127.0.0.1:1/v1");
  expect(await command(["read", "-c", file, "hall.a"])).toMatchObject({ status: 69 });
});
