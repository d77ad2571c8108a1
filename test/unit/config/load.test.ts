// A valid configuration, and the values that the program gets from it.
import { createHash } from "node:crypto";
import { delimiter, resolve } from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { agentPlace } from "../../../src/config/agent-place.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { complaints, environmentOf, head, load, withPassword } from "../../support/config.ts";
import { has } from "../../support/platform.ts";

const simulator = (tags: string) => `${head}sources:\n  demo:\n    type: simulator\n    tags:\n${tags}`;

test("omitted settings get their defaults", async () => {
  const config = await load(head, withPassword);
  expect(config.agent).toEqual({
    name: "north.gw",
    dataDir: resolve("/site/data"),
    unsyncedClock: "hold",
    ownSignals: { every: 10_000 },
  });
  expect(config.buffer).toMatchObject({ maxSize: 2 * 2 ** 30, sync: 250, ackDelay: "auto", whenFull: "dropOldest" });
  expect(config.http.listen).toEqual({ host: "127.0.0.1", port: 8421 });
  expect(config.log.level).toBe("info");
  expect(config.service).toMatchObject({ apiVersion: "1.1beta1", namespace: "platform", maxLag: 10_000 });
  expect(config.sources).toEqual([]);
});

test("without a data directory in the file, systemd's first one is used", async () => {
  const given = { ...withPassword, STATE_DIRECTORY: ["/var/lib/tagferry", "/var/lib/other"].join(delimiter) };
  expect((await load(head, given)).agent.dataDir).toBe(resolve("/var/lib/tagferry"));
  expect((await load(`${head}agent: { dataDir: state }\n`, given)).agent.dataDir).toBe(resolve("/site/state"));
});

test.runIf(has.packages)(
  "commands use the data directory of the package's agent, although only its unit sets it",
  async () => {
    const at = async (file: string, text: string, variables = {}) => {
      const environment = environmentOf({ ...withPassword, ...variables }, { [resolve("/site", file)]: text });
      const { agent } = await loadConfig(file, environment);
      const place = await agentPlace(file, environment);
      expect(place?.dataDir).toBe(agent.dataDir);
      return agent.dataDir;
    };
    const packaged = "/etc/tagferry/tagferry.yaml";
    expect(await at(packaged, head)).toBe("/var/lib/tagferry");
    expect(await at("../etc/tagferry/tagferry.yaml", head)).toBe("/var/lib/tagferry");
    expect(await at(packaged, head, { STATE_DIRECTORY: "/data" })).toBe("/data");
    expect(await at(packaged, `${head}agent: { dataDir: /srv/data }\n`)).toBe("/srv/data");
    expect(await at("/etc/other.yaml", head)).toBe("/site/data");
  },
);

test("the checksum covers the files in order, each once, whatever values the references have", async () => {
  const files = {
    "/site/conf.d/b.yaml": "sources: { b: { type: simulator, tagsFrom: tags.csv } }\n",
    "/site/conf.d/a.yaml": "\ufeffsources: { a: { type: simulator, tagsFrom: tags.csv, tags: [{ input: a.sine }] } }\n",
    "/site/conf.d/tags.csv": "input,wave,shared\n${NAME:-one}.x,sine,true\n",
  };
  const text = `${head}include: conf.d/*.yaml\n`;
  const order = [text, files["/site/conf.d/a.yaml"], files["/site/conf.d/b.yaml"], files["/site/conf.d/tags.csv"]];
  const expected = createHash("sha256").update(order.join("")).digest("hex").slice(0, 12);
  const checksum = async (password: string, given: string, all = files) =>
    (await load(given, { PASSWORD: password }, all)).checksum;

  expect(await checksum("one", text.replace("conf.d/*.yaml", "conf.d/a.yaml"))).not.toBe(expected);
  const shared = {
    ...files,
    "/site/conf.d/b.yaml": files["/site/conf.d/b.yaml"].replace("tagsFrom: tags.csv", "every: 1s"),
  };
  expect(await checksum("one", text, shared)).not.toBe(expected);
  expect(await checksum("one", text)).toBe(expected);
  expect(await checksum("two", text)).toBe(expected);
});

test("a version of the interface is the written text, not the number that YAML parses", async () => {
  for (const version of ["1.0", "1.1", "1.1beta1", '"1.0"'])
    expect((await load(head.replace("url:", `apiVersion: ${version}, url:`), withPassword)).service.apiVersion).toBe(
      version.replaceAll('"', ""),
    );
});

test("a number or keyword of YAML where a text is required is the text as written", async () => {
  const config = await load(
    `${head}sources:
  hall:
    type: mqtt
    url: mqtt://broker:1883
    clientId: 0815
    username: true
    password: 1e3
    tags:
      - { input: 17, topic: 3.10 }
`,
    withPassword,
  );
  const [hall] = config.sources;
  expect(hall?.options).toMatchObject({ clientId: "0815", username: "true" });
  expect(hall?.rules[0]?.input).toBe("17");
  expect(hall?.tags[0]).toMatchObject({ topic: { filter: "3.10" } });
});

test("ON, OFF, yes, no and off are words", async () => {
  const config = await load(
    simulator("      - { input: a, values: { ON: 1, OFF: 0, yes: 2, true: 3 }, report: off }\n"),
    withPassword,
  );
  expect(config.sources[0]?.rules[0]).toMatchObject({ values: { ON: 1, OFF: 0, yes: 2, true: 3 }, report: "off" });
});

test("UTF-16, and zeros that a power cut left, are reported as such, also in a table", async () => {
  const zeros =
    "agent.yaml:1:1  has null characters in it\n                save it as UTF-8, or restore it after a power cut";
  for (const text of ["\0\0\0\0", `${head}\0`, Buffer.from(head, "utf16le")])
    expect((await complaints(text, withPassword)).startsWith(zeros)).toBe(true);
  const table = { "/site/t.csv": Buffer.from("input,wave\na,sine\n", "utf16le") };
  expect(await complaints(simulator("").replace("tags:", "tagsFrom: t.csv"), withPassword, table)).toMatch(
    /^agent\.yaml:6:15 {2}sources\.demo\.tagsFrom {2}t\.csv has null characters in it/,
  );
});

test("an empty section equals a missing one", async () => {
  expect(await complaints(`${head}buffer:\nlog:\n  # level: debug\nsources:\n`, withPassword)).toBe(
    "agent.yaml:1:1  warning: has no sources: nothing will be read",
  );
});

test("a source without tags is a warning", async () => {
  expect(await complaints(simulator(""), withPassword)).toMatch(
    /^agent\.yaml:5:5 {2}warning: sources\.demo {2}has no tags: nothing will be read\n/,
  );
});

test("state names without type: enum, and one name of two states, are warnings", async () => {
  const warnings = (signal: string) =>
    complaints(simulator(`      - { input: a, wave: sine, signal: { ${signal} } }\n`), withPassword);
  expect(await warnings("type: enum, enumValues: { 0: off, 1: on }")).toBe("");
  expect(await warnings("enumValues: { 0: off, 1: on }")).toMatch(
    /^agent\.yaml:7:\d+ {2}warning: sources\.demo\.tags\[0\]\.signal\.enumValues {2}has no effect without type: enum/,
  );
  expect(await warnings("type: enum, enumValues: { 0: off, 1: on, 2: off }")).toMatch(
    /warning: sources\.demo\.tags\[0\]\.signal\.enumValues {2}gives two states the name "off"/,
  );
});

test("a literal secret is a warning, one by reference is not", async () => {
  const said = await complaints(
    `version: 1
service: { url: http://127.0.0.1:8420/v1, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: canary } } }
sources:
  hall:
    type: mqtt
    url: mqtts://broker
    password: "\${MQTT:-canary}"
    tags:
      - { input: a, topic: a }
`,
  );
  expect(said).toBe(`agent.yaml:2:105  warning: service.auth.basic.password  a secret stands in the file itself
                  better a reference: \${file:/run/secrets/name}, \${NAME} or, under systemd, \${credential:name}
     2 | …: { url: http://127.0.0.1:8420/v1, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: ***
       |                                                                                                   ^`);
});

test("a secret is never printed", async () => {
  const config = await load(head, withPassword);
  const printed = JSON.stringify(config) + inspect(config, { depth: 10 }) + String(config.service.auth.basic?.password);
  expect(printed).not.toContain("canary");
  expect(printed).toContain("***");
  expect(config.service.auth.basic?.password.reveal()).toBe("canary-7f3a");
});

test("a password in an invalid address is not shown", async () => {
  const sources = `  a: { type: mqtt, url: "mqtt://gw:canary@b", tags: [{ input: a, topic: a }] }
  b: { type: modbus, url: "tcp://gw:canary@h:x", tags: [{ input: b, at: "hr:0" }] }
  c: { type: opcua, url: "http://gw:canary@h", tags: [{ input: c, node: i=1 }] }
`;
  const said = await complaints(`${head.replace("http://", "ftp://gw:canary@")}sources:\n${sources}`, withPassword);
  expect(said.split("\n").filter((line) => line.startsWith("agent.yaml"))).toHaveLength(4);
  expect(said).not.toMatch(/canary/);
});

test("an alias has the value of its anchor, and << merges below written keys", async () => {
  const config = await load(
    simulator(`      - &first { input: a, wave: square, period: 5s }
      - { <<: *first, input: b, period: 7s }
`),
    withPassword,
  );
  expect(config.sources[0]?.tags).toMatchObject([
    { wave: "square", period: 5_000 },
    { wave: "square", period: 7_000 },
  ]);
});

test("nested aliases do not exhaust memory", async () => {
  const levels = Array.from(
    { length: 9 },
    (_, i) => `  l${i + 1}: &l${i + 1} [${Array(10).fill(`*l${i}`).join(", ")}]`,
  );
  const said = await complaints(`${head}templates:\n  l0: &l0 [{ input: a }]\n${levels.join("\n")}\n`, withPassword);
  expect(said).toMatch(/makes the file too large: aliases of aliases/);
});

test("an error shows the file's name as given", async () => {
  const environment = environmentOf({}, { "/etc/tagferry/x.yaml": "a: 1\n" });
  await expect(loadConfig("../etc/tagferry/x.yaml", environment)).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringMatching(/^\.\.\/etc\/tagferry\/x\.yaml: \d errors$/),
  });
});

test("a missing file is a configuration error", async () => {
  const rejected = loadConfig("none.yaml", environmentOf());
  await expect(rejected).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  await expect(rejected).rejects.toMatchObject({
    cause: { issues: [{ file: "none.yaml", line: 1, message: "cannot be read: there is no such file" }] },
  });
});

test("ten thousand tags are loaded", { timeout: 600_000 }, async () => {
  const tags = Array.from(
    { length: 10_000 },
    (_, i) => `      - { input: a.b${i}, wave: sine, every: 5s, signal: { engUnit: V } }\n`,
  );
  const config = await load(simulator(tags.join("")), withPassword);
  expect(config.sources[0]?.rules).toHaveLength(10_000);
});

test.each(["token", "readToken"])("http.%s has at least 16 characters", async (name) => {
  const written = (length: number) => `${head}http: { ${name}: ${"t".repeat(length)} }\nsources: {}\n`;
  expect((await load(written(16), withPassword)).http).toMatchObject({ [name]: expect.anything() });
  expect(await complaints(written(15), withPassword)).toContain(`http.${name}  must have at least 16 characters`);
});

test("the address of a proxy with a password is a secret, and a literal one is a warning", async () => {
  const written = (proxy: string) => head.replace("auth:", `proxy: "${proxy}", auth:`);
  const config = await load(written("http://me:canary-pw@proxy:3128"), withPassword);
  expect(config.service.proxy?.reveal()).toBe("http://me:canary-pw@proxy:3128");
  expect(JSON.stringify(config) + inspect(config, { depth: 10 })).not.toContain("canary");
  expect(await complaints(written("http://me:canary-pw@proxy:3128"), withPassword)).toContain(
    "service.proxy  a secret stands in the file itself",
  );
  expect(await complaints(written("http://proxy:3128"), withPassword)).not.toContain("proxy");
  const wrong = await complaints(written("ftp://me:canary-pw@proxy:3128"), withPassword);
  expect(wrong).toContain("must be the http or https address of a proxy");
  expect(wrong).not.toContain("canary");
});

test("an empty password is a warning", async () => {
  expect(await complaints(head, { PASSWORD: "" })).toContain(
    "warning: service.auth.basic.password  is empty: the service will refuse it",
  );
  expect(await complaints(head, withPassword)).not.toContain("empty");
});

test("nothing is loaded when certificate checks are disabled for all of Node", async () => {
  const off = { ...withPassword, NODE_TLS_REJECT_UNAUTHORIZED: "0" };
  expect(await complaints(head, off)).toContain("NODE_TLS_REJECT_UNAUTHORIZED=0");
  expect(await complaints(head, { ...off, NODE_TLS_REJECT_UNAUTHORIZED: "1" })).not.toContain("TLS");
});

test("a password sent off the machine without TLS is a warning; a local or encrypted one is not", async () => {
  const broker = (url: string, more = "username: me, password: '${PASSWORD}'") =>
    complaints(`${head}sources: { hall: { type: mqtt, url: "${url}", ${more}, tags: [{ input: a, topic: a }] } }\n`, {
      ...withPassword,
    });
  const said = "sources.hall.url  is not encrypted";
  for (const url of ["mqtt://broker.local:1883", "ws://10.0.0.9/mqtt", "mqtt://127.plant.example"])
    expect(await broker(url), url).toContain(said);
  for (const url of ["mqtts://broker.local", "mqtt://127.0.0.1:1883", "ws://localhost/mqtt", "mqtt://[::1]"])
    expect(await broker(url), url).not.toContain("is not encrypted");
  expect(await broker("mqtt://broker.local", "qos: 1")).not.toContain("is not encrypted");
  expect(await broker("mqtt://broker.local", "username: me, passwordFile: /run/token")).toContain(said);
  const second = `username: me, password: '\${PASSWORD}', servers: ["mqtt://other.local"]`;
  expect(await broker("mqtts://broker.local", second)).toContain(said);
  const service = (url: string) => complaints(head.replace("http://127.0.0.1:8420/v1", url), withPassword);
  expect(await service("http://service.example/v1")).toContain("service.url  is not encrypted");
  expect(await service("https://service.example/v1")).not.toContain("is not encrypted");
  const otlp = (url: string) =>
    complaints(
      `${head}otlp: { url: "${url}", headers: { authorization: "\${PASSWORD}" } }\nsources: {}\n`,
      withPassword,
    );
  expect(await otlp("http://collector.example:4318")).toContain("otlp.url  is not encrypted");
  for (const url of ["https://collector.example:4318", "http://127.0.0.1:4318"])
    expect(await otlp(url), url).not.toContain("is not encrypted");
  const cluster = (servers: string, more = "user: me, password: '${PASSWORD}'") =>
    complaints(`${head}cluster: { servers: [${servers}], ${more} }\nsources: {}\n`, withPassword);
  const isOpen = "cluster.servers  is not encrypted: the password";
  expect(await cluster("nats://localhost, nats://b.example")).toContain(isOpen);
  for (const servers of ["nats://localhost", "'nats://[::1]:4222'", "tls://b.example"])
    expect(await cluster(servers), servers).not.toContain("is not encrypted");
  for (const more of ["replicas: 3", "user: me, password: '${PASSWORD}', tls: {}"])
    expect(await cluster("nats://b.example", more), more).not.toContain("is not encrypted");
});

test("the address of a collector must not hold the path that is appended to it", async () => {
  const otlp = (url: string) => complaints(`${head}otlp: { url: "${url}" }\nsources: {}\n`, withPassword);
  const wrong = "otlp.url  must be the base address: /v1/metrics and /v1/logs are appended to it";
  for (const path of ["/v1/metrics", "/v1/logs/", "/otlp/v1/metrics"])
    expect(await otlp(`https://collector.example:4318${path}`), path).toContain(wrong);
  for (const path of ["", "/", "/otlp", "/v1"])
    expect(await otlp(`https://collector.example:4318${path}`), path).not.toContain("otlp.url");
});

test("an unverified certificate is a warning in every section", async () => {
  const broker = (options: string) =>
    complaints(`${head}sources: { hall: { type: mqtt, ${options}, tags: [{ input: a, topic: a }] } }\n`, withPassword);
  const said = "sources.hall.verify  is none: the certificate of the broker is not verified";
  for (const url of ["mqtts://broker.local", "wss://127.0.0.1/mqtt"])
    expect(await broker(`url: "${url}", verify: none`), url).toContain(said);
  expect(await broker('url: "mqtt://127.0.0.1", servers: ["mqtts://b"], verify: none')).toContain(said);
  expect(await broker('url: "mqtt://127.0.0.1", verify: none')).not.toContain("verify");
  expect(await broker('url: "mqtts://broker.local", verify: ca')).not.toContain("verify");
});

test("one client identifier at two ports of a machine is a warning: they may be two brokers", async () => {
  const said = await complaints(
    `${head}sources: { a: { type: mqtt, url: 'mqtt://b', clientId: x, tags: [{ input: a, topic: a }] }, b: { type: mqtt, url: 'mqtts://b', clientId: x, tags: [{ input: b, topic: a }] } }\n`,
    withPassword,
  );
  expect(said).toMatch(/warning: sources\.b\.clientId {2}is client identifier x at b, as source a\n.*if both ports/);
  expect(said).not.toContain("at b:");
});

test.each([
  ["written twice", "url: 'mqtt://b', clientId: x", "url: 'mqtt://b', clientId: x"],
  ["the default of one", "url: 'mqtt://b', clientId: north-hall2", "url: 'mqtt://B:1883'"],
  ["a fail-over server", "url: 'mqtts://b', clientId: x", "url: 'mqtts://a', servers: ['mqtts://b:8883'], clientId: x"],
  ["two names of this machine", "url: 'mqtt://localhost', clientId: x", "url: 'mqtt://127.0.0.1', clientId: x"],
])("two sources with one client identifier at one broker are an error: %s", async (_, first, second) => {
  const sources = (one: string, other: string) =>
    complaints(
      `${head}agent: { name: north }\nsources: { hall1: { type: mqtt, ${one}, tags: [{ input: a, topic: a }] }, hall2: { type: mqtt, ${other}, tags: [{ input: b, topic: a }] } }\n`,
      withPassword,
    );
  expect(await sources(first, second)).toMatch(
    /sources\.hall2\.clientId {2}is client identifier \S+ at .*, as source hall1/,
  );
  expect(
    await sources(first, second.replace("clientId: x", "clientId: y").replace("mqtt://B:", "mqtt://c:")),
  ).not.toContain("clientId");
});

test.each([
  ["http:///v1", "must name a host"],
  ["https://service/v1?key=1", "must have no query or fragment"],
  ["https://service/v1#key", "must have no query or fragment"],
  ["https://service/v1/rpc", "must be the base address: /rpc is appended to it"],
])("an address of the service to which no request could go is an error: %s", async (url, wanted) => {
  const text = `${head.replace("http://127.0.0.1:8420/v1", `"${url}"`)}sources: {}\n`;
  expect(await complaints(text, withPassword)).toContain(`service.url  ${wanted}`);
});

test("a user name that the header could not carry is an error", async () => {
  const text = `${head.replace("password:", "username: 'a:b', password:")}sources: {}\n`;
  expect(await complaints(text, withPassword)).toContain("service.auth.basic.username  must not contain a colon");
});
