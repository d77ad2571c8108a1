// What `check --online` reports about the service and the sources of a configuration.
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
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

test("service and sources that answer are reported, in every dialect, and nothing is stored or kept", async () => {
  using home = temporaryFolder();
  await using service = await testService();
  await using broker = await openMqttBroker({ credentials: { username: "gw1", password: "gw1-password" } });
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [2301]);
  const written = { file: home.file("agent.yaml"), dataDir: home.file("data"), broker: broker.url, modbus: device.url };
  for (const version of ["1.0", "1.1beta1", "1.1"]) {
    write({ ...written, service: service.url, version });
    const { status, stdout } = await command(["check", "-c", written.file, "--online"]);
    expect({ version, status, stdout }).toEqual({
      version,
      status: 0,
      stdout: expect.stringMatching(
        /service: answers, \d+ ms\nhall: answers, \d+ ms\nbus: answers, \d+ ms\n {2}unit 1: hr:0 u16 is 2301\n$/,
      ),
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

/** Writes a Modbus source with these tags at `url`, and a service that is unreachable. */
function writeModbus(file: string, url: string, devices: string, options = ""): void {
  writeFileSync(
    file,
    `version: 1
agent: { name: gw1 }
service: { url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: x } } }
sources: { bus: { type: modbus, url: "${url}", timeout: 200ms, ${options} devices: [${devices}] } }
`,
  );
}

test("one value and each refused address of each Modbus unit are shown: an open port alone proves none", async () => {
  using home = temporaryFolder();
  await using device = await modbusDevice();
  device.unit(1).set("hr", 5, [7]);
  device.unit(1).refuse("hr", 0, 0, 2);
  device.unit(3).exception = 2;
  const file = home.file("agent.yaml");
  const units = [1, 2, 3].map(
    (unit) => `{ unit: ${unit}, tags: [{ input: u${unit}.a, at: hr:0 }, { input: u${unit}.b, at: hr:5 }] }`,
  );
  writeModbus(file, device.url, units.join(", "));

  const { status, stdout } = await command(["check", "-c", file, "--online"]);

  const lines = stdout.slice(stdout.indexOf("bus: ")).trimEnd().split("\n");
  expect(lines.filter((line) => line.includes("agent.yaml:4:"))).toEqual(
    ["unit 1", "unit 3", "unit 3"].map((unit) => expect.stringContaining(`expected an address of ${unit}, got exc`)),
  );
  expect(lines.slice(0, 6)).toEqual([
    expect.stringMatching(/^bus: 1 of 3 units gave a value, 3 of 6 tags are refused, \d+ ms$/),
    "  unit 1: hr:5 u16 is 7",
    "  unit 2: did not answer within 600ms",
    expect.stringMatching(/^ {4}check unit: a unit that is not there says nothing; .*rtu\+tcp:\/\/127\.0\.0\.1:\d+$/),
    "  unit 3: answers hr:5 with exception 2: illegal data address: the device does not have this address",
    "    tagferry browse shows which addresses the device has",
  ]);
  expect(status).toBe(69);
});

test("a Modbus device slower than the timeout and one that echoes another unit are reported with the remedy", async () => {
  using home = temporaryFolder();
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [7]);
  device.latencyMs = 300;
  const file = home.file("agent.yaml");
  writeModbus(file, device.url, "{ unit: 1, tags: [{ input: a, at: hr:0 }] }");

  const slow = await command(["check", "-c", file, "--online"]);

  expect(slow.stdout).toMatch(/ {2}unit 1: its answers take 0\.\d s: raise timeout to 1s\n/);
  device.latencyMs = 0;
  device.echoUnit = 0;
  const other = await command(["check", "-c", file, "--online"]);
  expect(other.stdout).toContain("unit 0 instead of 1 (replyUnit: any accepts that)");
  writeModbus(file, device.url, "{ unit: 1, tags: [{ input: a, at: hr:0 }] }", "replyUnit: any,");
  expect((await command(["check", "-c", file, "--online"])).stdout).toContain("unit 1: hr:0 u16 is 7");
});

test("^C while the running agent does not answer causes no unhandled failure", async () => {
  using home = temporaryFolder();
  const stop = new AbortController();
  const hanging = createServer(() => stop.abort(new Error("stopped")));
  await once(hanging.listen(0, "127.0.0.1"), "listening");
  const { port } = hanging.address() as AddressInfo;
  const nowhere = { service: "http://127.0.0.1:1/v1", broker: "mqtt://127.0.0.1:1", modbus: "tcp://127.0.0.1:1" };
  const file = home.file("agent.yaml");
  write({ file, dataDir: home.file("data"), ...nowhere });
  writeFileSync(file, `${readFileSync(file, "utf8")}http: { listen: "127.0.0.1:${port}" }\n`);
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => void unhandled.push(reason);
  process.on("unhandledRejection", note);
  await command(["check", "-c", file, "--online"], { signal: stop.signal }).catch(() => {});
  await new Promise(setImmediate);
  process.off("unhandledRejection", note);
  hanging.close();
  expect(stop.signal.aborted).toBe(true);
  expect(unhandled).toEqual([]);
});
