// The output of `tagferry check`, and its exit status.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { check } from "../../../src/cli/configure/check.ts";
import { environmentOf, head, withPassword } from "../../support/config.ts";

async function checked(
  text: string,
  options: { json?: boolean } = {},
  variables: Record<string, string> = withPassword,
  freeDisk?: number,
) {
  const lines: string[] = [];
  const io = {
    print: (line: string) => lines.push(line),
    signal: new AbortController().signal,
    environment: {
      ...environmentOf(variables, { "/site/agent.yaml": text, "/run/secrets/line3_password": "canary" }),
      freeDisk: async () => freeDisk,
    },
  };
  const status = await check({ config: "agent.yaml", ...options }, io);
  return { status, text: lines.join("\n") };
}

const whole = readFileSync(join(import.meta.dirname, "../../fixtures/config/whole.yaml"), "utf8");
const secrets = { SERVICE_PASSWORD: "canary", MQTT_PASSWORD: "canary" };
const simulated = (every: string, count = 1) =>
  `${head}sources: { demo: { type: simulator, every: ${every}, tags: [${Array.from({ length: count }, (_, i) => `{ input: demo.${i} }`).join(", ")}] } }\n`;

test("an invalid file gives every error and exit status 78", async () => {
  const { status, text } = await checked(`${head}buffer: { maxsize: 1GiB }\nlog: { level: loud }\n`);
  expect(status).toBe(78);
  expect(text).toBe(`agent.yaml:3:11  buffer.maxsize  unknown key; did you mean maxSize?
     3 | buffer: { maxsize: 1GiB }
       |           ^
agent.yaml:4:15  log.level  must be debug, info, warn or error, is "loud"
                 The least important lines that are written.
     4 | log: { level: loud }
       |               ^
agent.yaml: 2 errors`);
});

test("a file that an option names and that cannot be read is a warning, since the agent may run elsewhere", async () => {
  const { status, text } =
    await checked(`${simulated("1s").replace("every", "signal: { annotations: { file: x } }, every")}http: { tls: { certFile: no.pem, keyFile: /run/secrets/line3_password } }
otlp: { url: "https://collector", caFile: /no/ca.pem }
`);
  expect(status).toBe(0);
  expect(text.split("\n").filter((line) => line.includes("cannot read"))).toEqual([
    "agent.yaml:4:26  warning: http.tls.certFile  cannot read no.pem: there is no such file",
    "agent.yaml:5:43  warning: otlp.caFile  cannot read /no/ca.pem: there is no such file",
  ]);
  expect(text).toContain("agent.yaml is valid: 1 source, 1 tag, 2 warnings");
});

test("the takeover time is reported for sources that several agents can read", async () => {
  const cluster = "cluster: { servers: [nats://a], leaseTtl: 8s }\n";
  const { text } = await checked(`${simulated("1s").replace("type:", "run: anywhere, type:")}${cluster}`);
  expect(text).toContain("another agent that has demo reads it about 10 s after the one that does is gone");
  expect((await checked(`${simulated("1s")}${cluster}`)).text).not.toContain("reads it about");
});

test("a valid file gives its estimated cost and exit status 0", async () => {
  const { status, text } = await checked(simulated("1s", 10));
  expect(status).toBe(0);
  expect(text).toMatch(
    /^agent\.yaml is valid: 1 source, 10 tags\n {2}demo {2}simulator {2}10 tags {2}10 readings\/s {2}1 requests\/s\n/,
  );
  expect(text).toMatch(
    /at most 11 points\/s, 1 of them the agent's own signals, and about \d+(\.\d)? MiB a day to the service, less than 0.1 % of what its limits allow/,
  );
  expect(text).toMatch(/an outage of about 720 hours fits into the buffer \(2 GiB\)/);
});

test("a serial line reports its expected load, and when it is too high", async () => {
  const line = (every: string) =>
    `${head}sources: { bus: { type: modbus, url: "rtu:///dev/ttyUSB0", every: ${every}, tags: [{ input: a, at: "hr:0", unit: 1 }, { input: b, at: "hr:0", unit: 2 }] } }\n`;
  expect((await checked(line("1s"))).text).toMatch(
    /bus +modbus +2 tags +2 readings\/s +2 requests\/s +bus 6\.\d+ % busy\n/,
  );
  expect((await checked(line("50ms"))).text).toMatch(
    /40 requests\/s +bus 1\d\d(\.\d+)? % busy: too much, polls will be left out\n/,
  );
});

test("sources with an unpredictable message rate are named", async () => {
  const { text } = await checked(whole, {}, secrets);
  expect(text).toMatch(/hall +mqtt +\d+ tags +as messages come/);
  expect(text).toMatch(/not counting .*hall/);
  expect(text).not.toMatch(/canary/);
});

test("a configuration beyond the limits of the service is reported", async () => {
  const { text } = await checked(
    simulated("1s", 100).replace("auth:", "limits: { requestsPerSecond: 0.01, maxRequest: 64KiB }, auth:"),
  );
  expect(text).toMatch(/this leaves little to catch up with after an outage/);
});

test("report with a minimum interval reduces the estimate", async () => {
  const { text } = await checked(simulated("100ms").replace("{ input", "{ report: { minInterval: 1s }, input"));
  expect(text).toMatch(/at most 2 points\/s, 1 of them/);
});

test("a disk too small for the buffer is reported with the size that the buffer can reach", async () => {
  const config = simulated("1s").replace("service:", "buffer: { maxSize: 2GiB }\nservice:");
  const { status, text } = await checked(config, {}, withPassword, 1.5 * 2 ** 30);
  expect(status).toBe(0);
  expect(text).toContain(`
warning: the disk of ${resolve("/site/data")} has 1.5 GiB free, 512 MiB of which are left to others (buffer.reserveFreeDisk)
  the buffer can grow to 1 GiB there, not to 2 GiB: what exceeds that is dropped and counted; make room, or set dataDir to a larger disk`);
  const json = await checked(config, { json: true }, withPassword, 2 ** 20);
  expect(JSON.parse(json.text)).toMatchObject({
    disk: { folder: resolve("/site/data"), freeBytes: 2 ** 20, bufferBytes: 0 },
  });
  expect((await checked(config, {}, withPassword, 2 ** 40)).text).not.toContain("disk");
});

test("warnings are printed and do not change the exit status", async () => {
  const { status, text } = await checked(head.replace('"${PASSWORD}"', "hunter2"));
  expect(status).toBe(0);
  expect(text).toMatch(/warning: service.auth.basic.password {2}a secret stands in the file itself/);
  expect(text).toMatch(/2 warnings/);
  expect(text).not.toMatch(/hunter2/);
});

test("--json prints the same result for scripts", async () => {
  const wrong = await checked(`${head}x: 1\n`, { json: true });
  expect(wrong.status).toBe(78);
  expect(JSON.parse(wrong.text)).toMatchObject({
    ok: false,
    errors: [{ severity: "error", file: "agent.yaml", line: 3, column: 1, path: "x" }],
  });
  const right = await checked(simulated("1s"), { json: true });
  expect(right.status).toBe(0);
  expect(JSON.parse(right.text)).toMatchObject({
    ok: true,
    errors: [],
    forecast: {
      pointsPerSecond: 2,
      ownPointsPerSecond: expect.closeTo(1),
      sources: [{ name: "demo", type: "simulator", tags: 1, readingsPerSecond: 1 }],
    },
  });
});

test("a longer interval saves most of a month's bytes, since requests and answers name each signal less often", async () => {
  const monthly = async (service: string) => {
    const tags = Array.from({ length: 20 }, (_, i) => `{ input: line3.t${i}, wave: sine, every: 1s }`).join(", ");
    const text = `${head.replace("url:", `${service}, url:`)}agent: { ownSignals: off }
sources: { demo: { type: simulator, tags: [${tags}] } }
`;
    return JSON.parse((await checked(text, { json: true })).text).forecast.bytesPerMonth as number;
  };
  const month = 30 * 86_400;
  // Each second: 20 values, a time, 20 names of 8 letters in request and answer, one request and one answer.
  const compared = (20 * 500) / 3_600;
  expect(await monthly("interval: 1s")).toBeCloseTo(
    month * (20 * 7 + 31 + 20 * 14.5 + 400 + 20 * 57.5 + 300 + compared),
    -3,
  );
  // Each minute: 60 times as many values and times, and the names and envelopes once.
  const minutely = 20 * 7 + 31 + (20 * 14.5 + 400 + 20 * 57.5 + 300) / 60;
  expect(await monthly("interval: 60s")).toBeCloseTo(month * (minutely + compared), -3);
  expect(await monthly("interval: 60s, signals: { check: off }")).toBeCloseTo(month * minutely, -3);
});

test("for a plant of all protocols the cost of each source and the total equal a calculation by hand", async () => {
  const units = Array.from({ length: 20 }, (_, i) => `{ unit: ${i + 1}, template: meter, vars: { dev: m${i + 1} } }`);
  const nodes = Array.from(
    { length: 100 },
    (_, i) => `{ input: line3.t${i}, node: "ns=2;s=T${i}", report: { deadband: 0.2, minInterval: 2s } }`,
  );
  const { status, text } = await checked(`${head}buffer: { maxSize: 256MiB }
templates:
  meter:
    - { input: "{dev}.voltage", at: "hr:0 u16", scale: 0.1 }
    - { input: "{dev}.current", at: "hr:2 u16", scale: 0.01 }
    - { input: "{dev}.power", at: "hr:4 f32 cdab" }
    - { input: "{dev}.energy", at: "hr:300 u64", every: 60s }
sources:
  meters: { type: modbus, url: "rtu:///dev/ttyUSB0?baudRate=19200&parity=even", every: 5s, devices: [${units.join(", ")}] }
  chiller: { type: modbus, url: "tcp://10.0.0.5:502", tags: [{ input: c.t, at: "ir:0 i16", unit: 1 }, { input: c.on, at: "co:7", unit: 1 }] }
  line3: { type: opcua, url: "opc.tcp://10.0.3.5:4840", every: 500ms, tags: [${nodes.join(", ")}] }
  hall: { type: mqtt, url: "mqtts://broker.local:8883", tags: [{ input: "hall.{room}", topic: "sensors/{room}" }] }
`);
  expect(status).toBe(0);
  // 20 units: 3 values every 5 s in one request, 1 value every minute in another. 25 and 29 bytes of 11 bits at
  // 19,200 bit/s, pauses and 10 ms until the unit answers make 26 ms per request. Of 200 readings a second, 100 / 2 s
  // can become points.
  const [checksum, ...lines] = text.split("\n").toReversed();
  expect(checksum).toMatch(/^the checksum of this configuration is [0-9a-f]{12}$/);
  expect(lines.toReversed()).toEqual([
    "agent.yaml is valid: 4 sources, 183 tags",
    "  meters   modbus  80 tags   12.3 readings/s   4.33 requests/s  bus 11.3 % busy",
    "  chiller  modbus  2 tags    2 readings/s      2 requests/s",
    "  line3    opcua   100 tags  200 readings/s",
    "  hall     mqtt    1 tag     as messages come",
    // 12.3 + 2 + 50 points/s, and 16 signals of the agent every 10 s. A value takes 7 bytes and a time 31; OPC UA
    // values have their own times. A point takes 20 bytes on disk.
    expect.stringMatching(
      /^at most 65\.9 points\/s, 1\.6 of them the agent's own signals, and about 28\d MiB a day to the service, less than 0\.1 % of what its limits allow, not counting hall$/,
    ),
    "with a request every 1s, about 18.5 GiB a month sent and received, not counting hall",
    "an outage of about 56.5 hours fits into the buffer (256 MiB)",
  ]);
});

test("a client identifier used by two agents at one broker is an error when both configurations are given", async () => {
  const agent = (name: string, broker = "broker.local") =>
    `${head}agent: { name: ${name} }\nsources: { hall: { type: mqtt, url: "mqtt://${broker}", tags: [{ input: a, topic: a }] } }\n`;
  const lines: string[] = [];
  const run = (other: string) =>
    check(
      { config: "agent.yaml", with: ["other.yaml"] },
      {
        print: (line) => void lines.push(line),
        signal: new AbortController().signal,
        environment: environmentOf(withPassword, { "/site/agent.yaml": agent("gw1"), "/site/other.yaml": other }),
      },
    );
  expect(await run(agent("gw1"))).toBe(78);
  expect(lines[0]).toMatch(
    /^agent\.yaml:4:\d+ {2}sources\.hall\.clientId {2}is client identifier gw1-hall at broker\.local:1883, as source hall of agent gw1 in other\.yaml/,
  );
  expect(lines[0]).toContain("two agents need two names");
  expect(await run(agent("gw2"))).toBe(0);
  expect(await run(agent("gw1", "other.local"))).toBe(0);
});

test("a configuration listed among the others is not compared with itself", async () => {
  const text = `${head}agent: { name: gw1 }\nsources: { hall: { type: mqtt, url: "mqtt://broker.local", tags: [{ input: a, topic: a }] } }\n`;
  const lines: string[] = [];
  const status = await check(
    { config: "agent.yaml", with: ["./agent.yaml", "other.yaml", "/site/other.yaml"] },
    {
      print: (line) => void lines.push(line),
      signal: new AbortController().signal,
      environment: environmentOf(withPassword, {
        "/site/agent.yaml": text,
        "/site/other.yaml": text.replaceAll("gw1", "gw2"),
      }),
    },
  );
  expect({ status, first: lines[0] }).toMatchObject({ status: 0, first: expect.stringContaining("is valid") });
});
