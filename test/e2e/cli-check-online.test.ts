// What `check --online` says of the service and the sources that a configuration names.
import { existsSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { command } from "../support/command.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

interface Written {
  readonly file: string;
  readonly service: string;
  readonly dataDir: string;
  readonly broker: string;
  readonly modbus: string;
  readonly secret?: string;
  readonly version?: string;
}

function write({ file, service, dataDir, broker, modbus, secret = password, version = "1.1beta1" }: Written): void {
  writeFileSync(
    file,
    `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(dataDir)} }
service: { url: "${service}", apiVersion: ${version}, integration: ${integration}, auth: { basic: { password: "\${PW:-${secret}}" } } }
sources:
  hall: { type: mqtt, url: "${broker}", username: gw1, password: "\${PW:-gw1-password}", tags: [{ input: a, topic: a }] }
  bus: { type: modbus, url: "${modbus}", devices: [{ unit: 1, tags: [{ input: b, at: "hr:0 u16" }] }] }
`,
  );
}

test("service and sources that answer are told, in every dialect, and nothing is stored or kept", async () => {
  using home = temporaryFolder();
  await using service = await testService();
  await using broker = await openMqttBroker({ credentials: { username: "gw1", password: "gw1-password" } });
  await using device = await modbusDevice();
  const written = { file: home.file("agent.yaml"), dataDir: home.file("data"), broker: broker.url, modbus: device.url };
  for (const version of ["1.0", "1.1beta1", "1.1"]) {
    write({ ...written, service: service.url, version });
    const { status, stdout } = await command(["check", "-c", written.file, "--online"]);
    expect({ version, status, stdout }).toEqual({
      version,
      status: 0,
      stdout: expect.stringMatching(/service: answers, \d+ ms\nhall: answers, \d+ ms\nbus: answers, \d+ ms\n$/),
    });
  }
  const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true } });
  expect(Object.keys(body?.result?.["signals"] ?? {})).toEqual([]);
  expect(existsSync(home.file("data"))).toBe(false);

  write({ ...written, service: service.url, secret: "wrong" });
  const refused = await command(["check", "-c", written.file, "--online", "--json"]);
  expect(refused.status).toBe(77);
  expect(JSON.parse(refused.stdout)).toMatchObject({
    ok: false,
    online: [
      {
        what: "service",
        ok: false,
        error: expect.stringContaining("401"),
        remedy: expect.stringContaining("service.auth"),
      },
      { what: "hall", ok: true },
      { what: "bus", ok: true },
    ],
  });

  write({ ...written, service: "http://127.0.0.1:1/v1", modbus: "tcp://127.0.0.1:1" });
  const gone = await command(["check", "-c", written.file, "--online"]);
  expect(gone.status).toBe(69);
  expect(gone.stdout).toMatch(/service: http:\/\/127\.0\.0\.1:1\/v1: .*ECONNREFUSED.*\n {2}check service\.url/);
  expect(gone.stdout).toMatch(/bus: .*\n {2}check address, port, cable/);
});
