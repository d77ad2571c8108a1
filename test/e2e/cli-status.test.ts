// What `status` shows of a running agent.
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Status } from "../../src/agent/status/status.ts";
import { timeFaultWarnings } from "../../src/agent/status/warnings.ts";
import { askAgent } from "../../src/cli/shared/agent-client.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { openWeb } from "../../src/web/server.ts";
import { tagferry } from "../support/cli.ts";
import { command } from "../support/command.ts";
import { testRuntime } from "../support/runtime.ts";
import { sourceWith, statusWith, tagWith } from "../support/status.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function answering(status: Status, port = 0) {
  return openWeb(
    {
      listen: { host: "127.0.0.1", port },
      snapshot: () => status,
      metrics: async () => "",
      health: () => ({ ok: true }),
      ready: () => ({ ok: true }),
    },
    testRuntime(),
    new AbortController().signal,
  );
}

test("status shows sources, buffer, delivery and lag, and each fault with its remedy", async () => {
  const healthy = statusWith();
  await using agent = await answering(
    statusWith({
      sources: [
        sourceWith(),
        sourceWith({
          name: "bus1",
          type: "modbus",
          state: "waiting",
          error: "10.0.0.5:502 refuses",
          remedy: "check cable",
        }),
      ],
      tags: [tagWith(), tagWith({ input: "hall.bad", quality: "bad", reason: "no reading for 10s" })],
      upload: {
        ...healthy.upload,
        state: "retrying",
        error: "no route",
        remedy: "check the network",
        backlog: { trend: "growing", text: "grows by 40 points/s" },
        signals: {
          known: 12,
          pending: 2,
          saved: 10,
          checkedAt: healthy.time,
          lost: 1,
          changed: 2,
          unconfigured: 3,
          published: 4,
        },
      },
      gaps: { open: 1, day: 3, dayLost: 2, revision: 9 },
      warnings: [{ level: "error", message: "12 points were lost from the buffer: maxSize", remedy: "give it more" }],
    }),
  );

  const { status, stdout } = await tagferry(["status", "--url", agent.url]);

  expect(status).toBe(0);
  expect(stdout).toBe(`north-gw1: tagferry 0.1.0, up 1m30s, configuration 9f86d081884c for 1m30s, ${agent.url}
12 points were lost from the buffer: maxSize. Values lost in the last 24 h. Service unreachable. 1 source offline.

delivery  service unreachable for 1m30s, to http://127.0.0.1:8420/v1 as c8ktonqsahsmemfs7lv0
          lag 1.2s, 11,800 points in 90 requests since the start, 98 % of the permitted requests used, 6.2 KiB in each, backlog: grows by 40 points/s
          no route
            check the network
signals   10 of 12 saved, compared 0ms ago with the service, 1 lost and 2 changed there, saved again, 3 there that are not configured, see tagferry signals diff, 4 items published
buffer    4 MiB of 2 GiB, 200 points to deliver, the oldest 2s old
gaps      1 open, 3 in the last 24 h, 2 of them with values lost, see tagferry gaps

sources
  hall  mqtt    online for 1m30s   1 tag  133 readings/s  mqtt://127.0.0.1:1883
  bus1  modbus  offline for 1m30s  1 tag  133 readings/s  mqtt://127.0.0.1:1883
      10.0.0.5:502 refuses
        check cable

1 tag of 2 without a good value
  hall  hall.bad  sensors/room1/env  no reading for 10s

error: 12 points were lost from the buffer: maxSize
  give it more
`);
});

test("status shows the lasting warnings and the advice of a source", async () => {
  const details = { items: 3, warning: "no security: everything can be read", advice: "all subscriptions are taken" };
  await using agent = await answering(statusWith({ sources: [sourceWith({ name: "line", type: "opcua", details })] }));

  const { stdout } = await command(["status", "--url", agent.url]);

  expect(stdout).toMatch(/line .*online.*\n {6}warning: no security: .*\n {6}advice: all subscriptions are taken\n/);
});

test("status names tags whose device clock stands still, with the remedy", async () => {
  const fault = {
    source: "hall",
    input: "hall.level" as InputId,
    address: "a/level",
    readings: 30,
    repeats: 29,
    forMs: 145_000,
  };
  const timeFaults = { standing: 1, repeats: 0, first: [{ ...fault, kind: "standing" as const }] };
  await using agent = await answering(statusWith({ timeFaults, warnings: timeFaultWarnings(timeFaults) }));

  const { stdout } = await command(["status", "--url", agent.url]);

  expect(stdout).toContain("The device clock stands still for 1 Input ID.\n");
  expect(stdout).toContain(
    "warn: the device clock stands still for 1 Input ID: hall hall.level (30 readings with one time in 145 s)\n  set the device's clock",
  );
});

test("status --json gives the whole answer, and -c finds the agent by its configuration", async () => {
  const given = statusWith({ time: epochMicros(1_772_352_000_000_000) });
  await using agent = await answering(given);
  using folder = temporaryFolder();
  const file = folder.file("agent.yaml");
  writeFileSync(
    file,
    `version: 1
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
http: { listen: "0.0.0.0:${new URL(agent.url).port}" }
`,
  );
  const { status, stdout } = await command(["status", "-c", file, "--json"]);
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(given)));
});

test("names and messages of a device cannot control the terminal", async () => {
  const source = sourceWith({ state: "waiting", error: "\u001b[2J\u202egone\nfake: line" });
  await using agent = await answering(statusWith({ sources: [source] }));
  const { stdout } = await command(["status", "--url", agent.url]);
  expect(stdout).toContain("      \\u001b[2J\\u202egone\\u000afake: line\n");
});

test("status without a running agent prints a remedy and ends with 69", async () => {
  const server = createServer((_request, response) => response.end("<html>"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // bound to a TCP port
  const url = `http://127.0.0.1:${port}`;
  const stranger = await command(["status", "--url", url]);
  const encrypted = await command(["status", "--url", `https://127.0.0.1:${port}`]);
  server.removeAllListeners("request");
  const silent = askAgent(url, "/api/status", z.unknown(), new AbortController().signal, { withinMs: 100 });
  await expect(silent).rejects.toThrow(`no agent answers at ${url}: nothing came within 100ms`);
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  const nobody = await command(["status", "--url", url, "--json"]);

  expect(stranger).toMatchObject({ status: 69, stdout: "" });
  expect(stranger.stderr).toBe(`tagferry: what answers at ${url} is no agent
  start the agent with \`tagferry run\`, or name its address: -c FILE with its configuration, or --url
`);
  expect(encrypted).toMatchObject({ status: 69, stdout: "" });
  expect(encrypted.stderr).toContain(`:${port}: it does not speak TLS; then its address begins with http://\n`);
  expect(nobody).toMatchObject({ status: 69, stdout: "" });
  expect(nobody.stderr).toContain(`no agent answers at ${url}: connect ECONNREFUSED`);
  const help = await command(["status", "--help"]);
  expect(help.stdout).toContain("Example: tagferry status");
});

test("an invalid address is wrong use for every command", async () => {
  for (const name of ["status", "reload", "gaps", "support-bundle"])
    for (const url of ["nonsense", "127.0.0.1:8421", "opc.tcp://127.0.0.1:4840"])
      expect(await command([name, "--url", url])).toMatchObject({
        status: 2,
        stdout: "",
        stderr: expect.stringContaining("expected the address of an agent, as in http://127.0.0.1:8421"),
      });
});

test("a file named with a flag that cannot be used is wrong use, and is named", async () => {
  using folder = temporaryFolder();
  const [text, missing] = [folder.file("text"), folder.file("missing")];
  writeFileSync(text, "no certificate");
  const fleet = ["fleet", "status", "http://127.0.0.1:9"];
  for (const [args, message] of [
    [["gaps", "--ca-file", missing], `--ca-file ${missing} cannot be read: there is no such file`],
    [[...fleet, "--token-file", missing], `--token-file ${missing} cannot be read: there is no such file`],
    [[...fleet, "--ca-file", text], `--ca-file ${text} has no certificate; expected a PEM file`],
  ] as const)
    expect(await command([...args])).toMatchObject({ status: 2, stdout: "", stderr: `tagferry: ${message}\n` });
});
