// What an operator can do about points that the service refused.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { lockFolder } from "../../src/buffer/disk/files/lock.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { parseFault } from "../../src/service/config/fault.ts";
import { openRejects } from "../../src/upload/rejects/rejects.ts";
import { startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { has } from "../support/platform.ts";
import { testRuntime } from "../support/runtime.ts";
import { answers, fails, refusing as refusingInputs, ScriptedService } from "../support/scripted-service.ts";
import { password, testService } from "../support/service.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const t0 = epochMicros(1_767_225_600_000_000);

/** Writes a configuration, and three refused points of two inputs, for two reasons, into its data directory. */
async function refusedPoints(home: TemporaryFolder, url = "http://127.0.0.1:1/v1"): Promise<string> {
  const file = home.file("agent.yaml");
  writeFileSync(
    file,
    `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(home.file("data"))} }
service: { url: ${url}, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PASSWORD:-x}" } } }
`,
  );
  const rejects = await openRejects(join(home.file("data"), "upload", "rejects.ndjson"), testRuntime());
  const a = "hall.a" as InputId;
  const b = "hall.b" as InputId;
  await rejects.add(
    [
      { input: a, time: t0, value: 1.5, code: -32602, reason: "Invalid params (-32602, trace abc): too new" },
      { input: a, time: t0 + 1e6, value: -2, code: -32602, reason: "Invalid params (-32602, trace def): too new" },
      { input: b, time: t0, value: 3, code: 422, reason: "HTTP 422\u001b[2J" },
    ],
    () => {},
  );
  return file;
}

const upload = (home: TemporaryFolder) => join(home.file("data"), "upload");
const kept = (home: TemporaryFolder) =>
  readdirSync(upload(home))
    .filter((name) => name.startsWith("rejects"))
    .toSorted();

test("refused points are listed by reason, for people and for scripts", async () => {
  using home = temporaryFolder();
  const file = await refusedPoints(home);
  const list = await command(["rejects", "list", "-c", file]);
  const path = join(upload(home), "rejects.ndjson");
  expect(list).toMatchObject({ status: 0, stderr: "" });
  expect(list.stdout).toBe(`2 points: Invalid params (-32602): too new
  hall.a  2 points
  from 2026-01-01T00:00:00Z to 2026-01-01T00:00:01Z
1 point: HTTP 422\\u001b[2J
  hall.b  1 point
  from 2026-01-01T00:00:00Z to 2026-01-01T00:00:00Z
3 refused points in ${path}
`);
  const json = await command(["rejects", "list", "-c", file, "--json"]);
  expect(JSON.parse(json.stdout)).toMatchObject({
    points: 3,
    unreadable: 0,
    reasons: [{ code: -32602, points: 2, inputs: { "hall.a": 2 } }, { code: 422 }],
  });
});

test("dropped points are removed and counted", async () => {
  using home = temporaryFolder();
  const file = await refusedPoints(home);
  const dropped = await command(["rejects", "drop", "-c", file]);
  expect(dropped).toMatchObject({ status: 0, stdout: "3 refused points dropped\n" });
  expect(kept(home)).toEqual([]);
  for (const action of ["list", "retry"])
    expect(await command(["rejects", action, "-c", file])).toMatchObject({
      status: 0,
      stdout: "no points were refused\n",
    });
});

test("refused points are sent again; those refused again stay with the new reason", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  const file = await refusedPoints(home, service.url);
  service.otherwise = (exchange) => {
    const series = Object.keys(exchange.request.params.data?.series ?? {});
    const behaviour = series.includes("hall.b")
      ? fails(-32602, { trace: "t", params: { "data.series.hall.b": ["no"] } })
      : undefined;
    if (behaviour) return behaviour(exchange);
    exchange.response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: exchange.request.id, result: exchange.accept() }));
  };

  const { status, stdout } = await command(["rejects", "retry", "-c", file]);

  expect({ status, stdout }).toEqual({
    status: 1,
    stdout: "2 points delivered, 1 point refused again, see tagferry rejects list\n",
  });
  expect(Object.fromEntries(service.stored)).toEqual({
    "hall.a 2026-01-01T00:00:00Z": 1.5,
    "hall.a 2026-01-01T00:00:01Z": -2,
  });
  expect(kept(home)).toEqual(["rejects.ndjson"]);
  const list = await command(["rejects", "list", "-c", file]);
  expect(list.stdout).toContain("hall.b  1 point\n");
  expect(list.stdout).toContain("no");

  service.otherwise = (exchange) =>
    void exchange.response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: exchange.request.id, result: exchange.accept() }));
  expect(await command(["rejects", "retry", "-c", file])).toMatchObject({ status: 0, stdout: "1 point delivered\n" });
  expect(service.stored.get("hall.b 2026-01-01T00:00:00Z")).toBe(3);
  expect(kept(home)).toEqual([]);
});

test("an unreachable service and refused credentials lose none of them", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  service.otherwise = answers(401);
  const file = await refusedPoints(home, service.url);
  const refused = await command(["rejects", "retry", "-c", file]);
  expect(refused).toMatchObject({ status: 77, stderr: expect.stringContaining("HTTP 401") });
  const gone = await refusedPoints(home);
  const unreachable = await command(["rejects", "retry", "-c", gone]);
  expect(unreachable).toMatchObject({ status: 69, stderr: expect.stringContaining("ECONNREFUSED") });
  const list = await command(["rejects", "list", "-c", file, "--json"]);
  expect(JSON.parse(list.stdout).points).toBeGreaterThanOrEqual(3);
});

test("points left by a killed retry are listed and sent", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  const file = await refusedPoints(home, service.url);
  const path = join(upload(home), "rejects.ndjson");
  writeFileSync(join(upload(home), "rejects.retry.ndjson"), readFileSync(path));
  writeFileSync(path, "{ torn");
  expect((await command(["rejects", "list", "-c", file])).stdout).toContain(
    "1 line of the files cannot be read\n3 refused",
  );
  expect(await command(["rejects", "retry", "-c", file])).toMatchObject({ status: 0, stdout: "3 points delivered\n" });
  expect(existsSync(join(upload(home), "rejects.retry.ndjson"))).toBe(false);
});

test("an agent counts a point once that was refused again by a retry that was killed", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  service.otherwise = answers(503);
  const file = await refusedPoints(home, service.url);
  const path = join(upload(home), "rejects.ndjson");
  const refused = readFileSync(path, "utf8");
  writeFileSync(join(upload(home), "rejects.retry.ndjson"), refused);
  writeFileSync(path, `${refused.split("\n")[0]?.replace("too new", "still too new")}\n`);
  const configuration = `${readFileSync(file, "utf8")}http: { listen: "127.0.0.1:0" }\n`;
  await using agent = await startAgent({ folder: home.path, configuration });

  await eventually(async () => (await agent.status()).upload.refusedPoints === 3);
  const list = await command(["rejects", "list", "-c", file, "--json"]);
  expect(JSON.parse(list.stdout)).toMatchObject({ points: 3, unreadable: 0 });
});

test("points that the service refuses again name its error, not that they were never sent", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  service.otherwise = refusingInputs((input) => input === "hall.b");
  const file = await refusedPoints(home, service.url);
  expect(await command(["rejects", "retry", "-c", file])).toMatchObject({ status: 1 });
  const list = await command(["rejects", "list", "-c", file, "--json"]);
  expect(JSON.parse(list.stdout).reasons).toMatchObject([{ code: -32021, points: 1, inputs: { "hall.b": 1 } }]);
  expect((await command(["rejects", "list", "-c", file])).stdout).not.toContain("never sent");
});

test.runIf(has.misplacedFiles)(
  "a data directory that cannot be read is reported with a command that helps, without a stack",
  async () => {
    using home = temporaryFolder();
    const file = await refusedPoints(home);
    const elsewhere = readFileSync(file, "utf8").replace(home.file("data"), `${file}/data`);
    writeFileSync(home.file("other.yaml"), elsewhere);
    expect(await command(["rejects", "list", "-c", home.file("other.yaml")])).toMatchObject({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(
        /^tagferry: \S+rejects\.retry\.ndjson: expected a folder .* found a file .*\n {2}namei .*\n$/,
      ),
    });
  },
);

/** Makes the service refuse `input` and accept all others. */
function refusing(service: ScriptedService, input: string): void {
  service.otherwise = (exchange) => {
    const series = Object.keys(exchange.request.params.data?.series ?? {});
    const result = series.includes(input) ? undefined : exchange.accept();
    if (!result) return fails(-32602, { trace: "t", params: { [`data.series.${input}`]: ["no"] } })(exchange);
    exchange.response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: exchange.request.id, result }));
  };
}

/** The outcome of `retry`, repeated while delivery has not begun: the agent is ready before. */
function onceDelivering(retry: () => ReturnType<typeof command>): ReturnType<typeof command> {
  return eventually(async () => {
    const outcome = await retry();
    return !outcome.stderr.includes("does not deliver at present") && outcome;
  });
}

test("a running agent sends refused points again, and what is refused again stays with the new reason", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  refusing(service, "hall.b");
  const file = await refusedPoints(home, service.url);
  const configuration = `${readFileSync(file, "utf8")}http: { listen: "127.0.0.1:0" }\n`;
  await using agent = await startAgent({ folder: home.path, configuration });
  const retry = () => command(["rejects", "retry", "-c", file, "--url", agent.page]);

  expect(await onceDelivering(retry)).toMatchObject({
    status: 1,
    stdout: "2 points delivered, 1 point refused again, see tagferry rejects list\n",
  });
  expect(service.stored.get("hall.a 2026-01-01T00:00:01Z")).toBe(-2);
  expect((await command(["rejects", "list", "-c", file])).stdout).toMatch(/^1 point: .*no\n {2}hall\.b {2}1 point\n/);
  expect((await agent.status()).upload.refusedPoints).toBe(1);

  refusing(service, "none");
  expect(await retry()).toMatchObject({ status: 0, stdout: "1 point delivered\n" });
  expect(service.stored.get("hall.b 2026-01-01T00:00:00Z")).toBe(3);
  expect(kept(home)).toEqual([]);
  expect((await agent.status()).upload.refusedPoints).toBe(0);
});

test("a point that was refused again is counted once while the retry runs", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  // Refuses one input, and is not available for the other.
  service.otherwise = (exchange) =>
    Object.keys(exchange.request.params.data?.series ?? {}).includes("hall.b")
      ? fails(-32602, { trace: "t", params: { "data.series.hall.b": ["no"] } })(exchange)
      : answers(503)(exchange);
  const file = await refusedPoints(home, service.url);
  const configuration = `${readFileSync(file, "utf8")}http: { listen: "127.0.0.1:0" }\n`;
  await using agent = await startAgent({ folder: home.path, configuration });
  const token = readFileSync(home.file("data/control.token"), "utf8").trim();
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  await eventually(async () => (await fetch(`${agent.page}/api/rejects/retry`, { method: "POST", headers })).ok);
  const list = await eventually(async () => {
    const { stdout } = await command(["rejects", "list", "-c", file, "--json"]);
    const found = JSON.parse(stdout);
    return found.reasons.some(({ reason }: { reason: string }) => reason.endsWith("no")) && found;
  });

  // The retry ends by itself after the next 503, sooner or later than this; the count must be the same.
  expect(list.points).toBe(3);
  await eventually(async () => (await agent.status()).upload.refusedPoints === 3);
});

test("a retry by the agent ends where the service still refuses an input, and puts its points back once, with that reason", async () => {
  using home = temporaryFolder();
  const fault = parseFault("partial=hall.b");
  if (typeof fault === "string") throw new Error(fault);
  await using service = await testService({ faults: [fault] });
  const file = await refusedPoints(home, service.url);
  const configuration = `${readFileSync(file, "utf8")}http: { listen: "127.0.0.1:0" }\n`;
  await using agent = await startAgent({ folder: home.path, configuration, env: { PASSWORD: password } });
  const retry = () => command(["rejects", "retry", "-c", file, "--url", agent.page]);
  const outcome = await onceDelivering(retry);

  expect(outcome).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(
      /^2 points delivered, 1 point stays refused: the service still refuses their inputs \(.+\)\n$/,
    ),
  });
  expect((await agent.status()).upload.refusedPoints).toBe(1);
  const list = await command(["rejects", "list", "-c", file]);
  expect(list.stdout).toMatch(/^1 point: .*\n {2}hall\.b {2}1 point\n/);
  expect(list.stdout).not.toContain("HTTP 422");
  expect(list.stdout).not.toContain("never sent");

  // The agent would retry the input by itself up to five minutes later.
  service.setFaults([]);
  expect(await retry()).toMatchObject({ status: 0, stdout: "1 point delivered\n" });
  expect((await agent.status()).upload.refusedPoints).toBe(0);
});

test("a retry is followed at an agent that requires a token for reading", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  refusing(service, "none");
  const file = await refusedPoints(home, service.url);
  const configuration = `${readFileSync(file, "utf8")}http: { listen: "127.0.0.1:0", readToken: 0123456789abcdef }\n`;
  writeFileSync(file, configuration);
  await using agent = await startAgent({ folder: home.path, configuration });
  const retry = () => command(["rejects", "retry", "-c", file, "--url", agent.page]);
  expect(await onceDelivering(retry)).toMatchObject({ status: 0, stdout: "3 points delivered\n" });
});

test.runIf(has.signals)("an agent that ends during a retry keeps the undecided points as refused", async () => {
  using home = temporaryFolder();
  await using service = await ScriptedService.open();
  service.otherwise = answers(503);
  const file = await refusedPoints(home, service.url);
  const configuration = `${readFileSync(file, "utf8")}http: { listen: "127.0.0.1:0" }\n`;
  {
    await using agent = await startAgent({ folder: home.path, configuration });
    const token = readFileSync(home.file("data/control.token"), "utf8").trim();
    const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
    // The agent is ready before it starts to deliver.
    const begun = await eventually(async () => {
      const answer = await fetch(`${agent.page}/api/rejects/retry`, { method: "POST", headers });
      return answer.status === 200 && (await answer.text());
    });
    expect(JSON.parse(begun)).toMatchObject({ ok: true, running: true, points: 3 });
    expect(kept(home)).toContain("rejects.retry.ndjson");
    await agent.stop();
  }
  expect(kept(home)).not.toContain("rejects.retry.ndjson");
  expect((await command(["rejects", "list", "-c", file])).stdout).toContain("3 refused points");
});

test("where the data directory is in use and no agent answers nothing is sent", async () => {
  using home = temporaryFolder();
  const file = await refusedPoints(home);
  mkdirSync(join(home.file("data"), "buffer"));
  using _agent = lockFolder(join(home.file("data"), "buffer"));
  const { status, stderr } = await command(["rejects", "retry", "-c", file, "--url", "http://127.0.0.1:1"]);
  expect({ status, stderr }).toEqual({ status: 69, stderr: expect.stringContaining("no agent answers at") });
  expect((await command(["rejects", "list", "-c", file])).stdout).toContain("3 refused points");
});
