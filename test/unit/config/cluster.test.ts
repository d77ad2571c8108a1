// The section `cluster` and the key `run` of a source.
import { expect, test } from "vitest";
import { loadConfig } from "../../../src/config/load.ts";
import { complaints, environmentOf, head, load, withPassword } from "../../support/config.ts";

const section = (yaml: string) => `${head}cluster: ${yaml}\n`;
const source = (run: string) =>
  `${head}sources: { demo: { type: simulator, ${run}, tags: [{ input: a, wave: sine }] } }\n`;

test("without the section there is no cluster", async () => {
  expect((await load(head, withPassword)).cluster).toBeUndefined();
});

test("omitted settings of the section get their defaults", async () => {
  const { cluster } = await load(section("{ servers: [nats://a:4222, tls://b] }"), withPassword);
  expect(cluster).toMatchObject({ servers: ["nats://a:4222", "tls://b"], replicas: 3, maxSize: 8 * 2 ** 30 });
  expect(cluster).toMatchObject({ maxAge: 30 * 86_400_000, leaseTtl: 6_000 });
});

const shared = (run: string) => `${source(run)}agent: { name: gw1 }\ncluster: { servers: [nats://a] }\n`;

test.each([
  ["run: here", "here"],
  ["run: anywhere", "anywhere"],
  ["run: preferHere", "preferHere"],
  ["run: { prefer: gw1 }", "preferHere"],
  ["run: { prefer: gw2 }", "anywhere"],
])("a source with %s is read %s by gw1", async (run, read) => {
  expect((await load(shared(run), withPassword)).sources).toMatchObject([{ run: read }]);
});

test("without the section cluster a source is read here", async () => {
  expect((await load(source("run: here"), withPassword)).sources).toMatchObject([{ run: "here" }]);
});

test.each([
  ["elsewhere", 'must be here, anywhere, preferHere or { prefer: NODE }, is "elsewhere"'],
  ["{ prefer: [a] }", "sources.demo.run.prefer"],
])("run: %s is refused", async (run, text) => {
  expect(await complaints(shared(`run: ${run}`), withPassword)).toContain(text);
});

test.each([
  ["{ servers: [] }", "cluster.servers  must have at least one entry"],
  ["{}", "cluster.servers  is missing"],
  ["{ servers: [http://a] }", "cluster.servers[0]  must be nats://host:port or tls://host:port"],
  ["{ servers: [nats://me:secret@a] }", "the user and password stand in user and password"],
  ["{ servers: [nats://a], user: me }", "cluster  must have both of user and password, or neither"],
  ["{ servers: [nats://a], credsFile: a, nkeyFile: b }", "must have at most one of user, credsFile and nkeyFile"],
  ["{ servers: [nats://a], tls: { certFile: a } }", "must have both of certFile and keyFile, or neither"],
  ["{ servers: [nats://a], replicas: 2 }", "cluster.replicas  must be 1, 3 or 5, is 2"],
  ["{ servers: [nats://a], leaseTtl: 1s }", "cluster.leaseTtl  must be at least 3s"],
  ["{ servers: [nats://a], leaseTTL: 6s }", "unknown key; did you mean leaseTtl?"],
])("cluster: %s is refused", async (yaml, text) => {
  expect(await complaints(section(yaml), withPassword)).toContain(text);
});

test("a password in the address of a server is not shown", async () => {
  expect(await complaints(section("{ servers: [nats://me:canary@a] }"), withPassword)).not.toContain("canary");
});

test.each(["anywhere", "preferHere", "{ prefer: gw1 }"])("run: %s needs a cluster", async (where) => {
  expect(await complaints(source(`run: ${where}`), withPassword)).toContain(
    "sources.demo.run  needs the section cluster: without it no other agent can read the source",
  );
});

test("agents that can read a source use one session at its broker, and check permits that", async () => {
  const source = (run: string, clientId = "") =>
    `${head}cluster: { servers: [nats://a] }\nsources: { hall: { type: mqtt, url: mqtt://b, run: ${run}${clientId}, tags: [{ input: a, topic: t }] } }\n`;
  const claims = new Map();
  const own = (text: string, file: string) =>
    loadConfig(file, environmentOf(withPassword, { [`/site/${file}`]: text }), undefined, claims);
  await own(source("anywhere"), "gw1.yaml");
  expect([...claims.keys()]).toEqual(expect.arrayContaining([expect.stringContaining("c8ktonqsahsmemfs7lv0-hall")]));
  await own(source("{ prefer: gw1 }"), "gw2.yaml");
  await expect(own(source("here", ", clientId: c8ktonqsahsmemfs7lv0-hall"), "gw3.yaml")).rejects.toThrow("1 error");
});
