// Who may ask for what on the page that finds and adds tags, and what is refused.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { processEnvironment } from "../../../src/config/files/environment.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { discoverWorld } from "../../support/discover-world.ts";
import { eventually } from "../../support/eventually.ts";
import { openMqttBroker as mqttBroker } from "../../support/mqtt-broker.ts";
import { has } from "../../support/platform.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const all = ["places", "open", "close", "list", "values", "propose", "write", "trust"];

test.for<[string, number, Readonly<Record<string, string>>]>([
  ["no token", 401, { authorization: "" }],
  ["a wrong token", 401, { authorization: "Bearer canary-0123456789abcdeF" }],
  ["another origin", 403, { origin: "https://evil.example" }],
  ["another site, as the browser says", 403, { "sec-fetch-site": "cross-site" }],
  ["what a form sends", 415, { "content-type": "text/plain" }],
])("refused for every request: %s", async ([, status, headers]) => {
  await using world = await discoverWorld();
  const answers = await Promise.all(all.map((action) => world.ask(action, {}, headers)));
  expect(answers.map((answer) => answer.status)).toEqual(all.map(() => status));
});

test("a request of a wrong kind, too long or not JSON is refused", async () => {
  await using world = await discoverWorld();
  expect((await fetch(`${world.url}/api/discover/places`)).status).toBe(405);
  expect((await world.ask("nothing")).status).toBe(404);
  expect((await world.ask("open", { url: "opc.tcp://h", more: 1 })).status).toBe(400);
  expect((await world.ask("open", {})).status).toBe(400);
  expect((await world.ask("open", { source: "none" })).body.reason).toContain("has no source none");
  const { body } = await world.ask("open", { url: "gopher://h" });
  expect(body.reason).toMatch(/^gopher:\/\/h must begin with one of .*\n {2}as in .*opc\.tcp:\/\/h:4840$/);
  // No line of the configuration is wrong.
  expect(body).not.toHaveProperty("remedy");
  expect((await world.ask("open", { url: "" })).body.reason).toMatch(/^the address must begin with one of/);
  expect((await world.ask("open", { url: "mqtt://reader:canary@h" })).body.reason).not.toContain("canary");
  expect((await world.ask("list", { look: "none" })).status).toBe(410);
  expect((await world.ask("values", { look: "none", keys: Array.from({ length: 501 }, () => "k") })).status).toBe(400);
  if (!has.earlyAnswers) return;
  const long = await world.ask("propose", { look: "none", name: "a", template: "x".repeat(5 * 2 ** 20), nodes: [] });
  expect(long.status).toBe(413);
});

const node = { address: "a/b", name: "b", depth: 1, path: ["a", "b"], value: 1, tag: { topic: "a/b" } };

test("a name never leads out of conf.d", async () => {
  await using broker = await mqttBroker();
  await using world = await discoverWorld();
  const { look } = (await world.ask("open", { url: broker.url })).body;
  for (const name of ["../evil", "a/b", "..", ".hidden", "a\0b", "", "x".repeat(65)]) {
    const { status } = await world.ask("propose", { look, name, nodes: [node] });
    expect([name, status]).toEqual([name, 400]);
  }
  if (!has.symbolicLinks) return;
  // A link is what another program manages, and may lead elsewhere.
  const elsewhere = world.folder.file("elsewhere.yaml");
  symlinkSync(elsewhere, world.folder.file("conf.d/linked.yaml"));
  const linked = await world.ask("propose", { look, name: "linked", nodes: [node] });
  expect(linked.status).toBe(422);
  expect(existsSync(elsewhere)).toBe(false);
});

test("without an include or a folder it says what to do, and writes nothing", async () => {
  await using broker = await mqttBroker();
  await using world = await discoverWorld({ configuration: "" });
  rmSync(world.folder.file("conf.d"), { recursive: true });
  const { obstacle } = (await world.ask("places")).body;
  expect(obstacle.reason).toContain("conf.d: there is no such file");
  expect(obstacle.steps.join("\n")).toMatch(/mkdir -p .*conf\.d\n[^]*include: conf\.d\/\*\.yaml\n/);
  mkdirSync(world.folder.file("conf.d"));
  const { look } = (await world.ask("open", { url: broker.url })).body;
  const wish = { look, name: "hall", nodes: [node] };
  const { body } = await world.ask("propose", wish);
  expect(body.obstacle).toMatchObject({ reason: `${world.file} does not include conf.d/hall.yaml` });
  expect(body.yaml).toContain("topic: a/b");
  expect((await world.ask("write", { ...wish, base: body.base, result: body.result })).status).toBe(422);
  writeFileSync(world.file, `${readFileSync(world.file, "utf8")}include: conf.d/*.yaml\n`);
  expect((await world.ask("places")).body.obstacle).toBeUndefined();
  expect(readdirSync(world.folder.file("conf.d"))).toEqual([]);
});

test("the secrets of the agent's own source go to its own address only", async () => {
  await using broker = await mqttBroker();
  const source = `include: conf.d/*.yaml\nsources: { hall: { type: mqtt, url: "${broker.url}", tags: [] } }\n`;
  await using world = await discoverWorld({ configuration: source });
  expect((await world.ask("open", { source: "hall", url: "mqtt://evil.example" })).status).toBe(400);
  expect((await world.ask("open", { source: "hall" })).status).toBe(200);
});

test("only so many devices are looked at, and a page that is gone frees its place", async () => {
  await using broker = await mqttBroker();
  await using world = await discoverWorld();
  const all = await Promise.all([1, 2, 3, 4, 5].map(() => world.ask("open", { url: broker.url })));
  const [opened, refused] = [all.filter(({ status }) => status === 200), all.filter(({ status }) => status !== 200)];
  expect(opened).toHaveLength(4);
  expect(refused).toMatchObject([{ status: 422, body: { reason: "4 devices are being looked at" } }]);
  await world.ask("close", { look: opened[0]?.body.look });
  expect((await world.ask("open", { url: broker.url })).status).toBe(200);
});

test("the connection to a device ends two minutes after the last request for it", async () => {
  const clock = new ManualClock();
  await using broker = await mqttBroker();
  await using world = await discoverWorld({ runtime: testRuntime({ clock }) });
  const { look } = (await world.ask("open", { url: broker.url })).body;
  await clock.advance(100_000);
  expect((await world.ask("values", { look, keys: [] })).status).toBe(200);
  await clock.advance(100_000);
  expect(broker.clients.length).toBe(1);
  await clock.advance(30_000);
  await eventually(() => broker.clients.length === 0);
  expect((await world.ask("list", { look })).status).toBe(410);
});

test.runIf(has.symbolicLinks)(
  "a source in a file that is a link is not changed, since the link may lead elsewhere",
  async () => {
    await using broker = await mqttBroker();
    await using world = await discoverWorld();
    const elsewhere = world.folder.file("elsewhere.yaml");
    const before = `sources: { hall: { type: mqtt, url: "${broker.url}", tags: [] } }\n`;
    writeFileSync(elsewhere, before);
    symlinkSync(elsewhere, world.folder.file("conf.d/hall.yaml"));
    const { look } = (await world.ask("open", { source: "hall" })).body;
    const wish = { look, nodes: [node] };
    const { body } = await world.ask("propose", wish);
    expect(body.obstacle).toMatchObject({ reason: expect.stringContaining("conf.d/hall.yaml is not a regular file") });
    expect((await world.ask("write", { ...wish, base: body.base, result: body.result })).status).toBe(422);
    expect(readFileSync(elsewhere, "utf8")).toBe(before);
  },
);

test("a device that accepts the connection and stays silent gives an error with its time limit", async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket.on("error", () => {})));
  using _closed = {
    [Symbol.dispose]: () => {
      silent.close();
      for (const socket of sockets) socket.destroy();
    },
  };
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const address = silent.address();
  const port = typeof address === "object" ? address?.port : 0;
  await using world = await discoverWorld();
  const { status, body } = await world.ask("open", { url: `opc.tcp://127.0.0.1:${port}` });
  expect(status).toBe(422);
  expect(body.reason).toMatch(/127\.0\.0\.1|no answer within/);
});

test("only so many requests are worked on at once, and of writes one after the other", async () => {
  const reloaded = Promise.withResolvers<{ readonly ok: boolean }>();
  await using broker = await mqttBroker();
  await using world = await discoverWorld({ reload: () => reloaded.promise });
  const { look } = (await world.ask("open", { url: broker.url })).body;
  const wish = { look, name: "hall", nodes: [node] };
  const { base, result } = (await world.ask("propose", wish)).body;
  const write = async () => (await world.ask("write", { ...wish, base, result })).status;
  const writes = Promise.allSettled(Array.from({ length: 8 }, write));
  await eventually(async () => (await world.ask("places")).status === 503);
  reloaded.resolve({ ok: true });
  const statuses = (await writes).map((each) => (each.status === "fulfilled" ? each.value : 0));
  expect(statuses.toSorted((x, y) => x - y)).toEqual([200, ...Array.from({ length: 7 }, () => 422)]);
  expect((await world.ask("places")).status).toBe(200);
});

test("a write that takes longer than other requests is answered with its outcome, and one that waits for it too long is not carried out", async () => {
  const clock = new ManualClock();
  const reloaded = Promise.withResolvers<{ readonly ok: boolean }>();
  await using broker = await mqttBroker();
  await using world = await discoverWorld({ runtime: testRuntime({ clock }), reload: () => reloaded.promise });
  const { look } = (await world.ask("open", { url: broker.url })).body;
  const write = async (name: string) => {
    const wish = { look, name, nodes: [{ ...node, input: name }] };
    const { file, base, result } = (await world.ask("propose", wish)).body;
    return { file, send: () => world.ask("write", { ...wish, base, result }) };
  };
  const [slow, waiting] = [await write("slow"), await write("waiting")];
  const sleeping = clock.sleeping;
  const first = slow.send();
  await eventually(() => existsSync(slow.file));
  const second = waiting.send();
  await eventually(() => clock.sleeping === sleeping + 2);
  await clock.advance(20_000);
  reloaded.resolve({ ok: true });

  expect(await first).toMatchObject({ status: 200, body: { ok: true } });
  expect(await second).toMatchObject({ status: 503, body: { reason: expect.stringContaining("nothing was written") } });
  expect((await (await write("next")).send()).status).toBe(200);
  expect(readdirSync(world.folder.file("conf.d"))).toEqual(["next.yaml", "slow.yaml"]);
});

test("a typed Input ID is not given to another tag of the same proposal", async () => {
  await using broker = await mqttBroker();
  await using world = await discoverWorld();
  const { look } = (await world.ask("open", { url: broker.url })).body;
  const other = { ...node, address: "c", tag: { topic: "c" }, input: "a.b" };
  const { body } = await world.ask("propose", { look, name: "hall", nodes: [node, other] });
  expect([body.inputs, body.errors]).toEqual([["a.b.2", "a.b"], []]);
});

test("a proposal says whether a reload would take up other changes, too", async () => {
  await using broker = await mqttBroker();
  await using world = await discoverWorld();
  const { look } = (await world.ask("open", { url: broker.url })).body;
  const wish = { look, name: "hall", nodes: [node] };
  expect((await world.ask("propose", wish)).body.otherChanges).toBe(false);
  writeFileSync(world.file, `${readFileSync(world.file, "utf8")}# edited\n`);
  expect((await world.ask("propose", wish)).body.otherChanges).toBe(true);
});

test("a typed password does not replace a file that is there already", async () => {
  await using broker = await mqttBroker();
  await using world = await discoverWorld();
  const taken = world.folder.file("conf.d/hall_password");
  writeFileSync(taken, "of another source\n");
  const { look } = (await world.ask("open", { url: broker.url, username: "u", password: "canary-typed" })).body;
  const wish = { look, name: "hall", nodes: [node] };
  const { body } = await world.ask("propose", wish);
  expect(body.secretFile).toBe(`${taken}2`);
  expect((await world.ask("write", { ...wish, base: body.base, result: body.result })).status).toBe(200);
  expect([taken, body.secretFile].map((file) => readFileSync(file, "utf8"))).toEqual([
    "of another source\n",
    "canary-typed\n",
  ]);
});

test("a typed user name is no reference to a variable of the agent", async () => {
  await using broker = await mqttBroker();
  await using world = await discoverWorld();
  const username = "plant${PASSWORD}$${x}";
  const { look } = (await world.ask("open", { url: broker.url, username })).body;
  const wish = { look, name: "hall", nodes: [node] };
  const { body } = await world.ask("propose", wish);
  expect((await world.ask("write", { ...wish, base: body.base, result: body.result })).status).toBe(200);
  const { sources } = await loadConfig(world.file, { ...processEnvironment(), variables: { PASSWORD: "canary" } });
  expect(sources[0]?.options).toMatchObject({ username });
});

test.for([{}, { username: "u", password: "canary-typed" }])(
  "a full disk leaves nothing of a write: %j",
  async (login) => {
    await using broker = await mqttBroker();
    await using world = await discoverWorld();
    const { look } = (await world.ask("open", { url: broker.url, ...login })).body;
    const wish = { look, name: "hall", nodes: [node] };
    const { body } = await world.ask("propose", wish);
    await using any = await open(import.meta.filename);
    using sync = vi.spyOn(Object.getPrototypeOf(any) as FileHandle, "datasync");
    const full = { code: "ENOSPC", syscall: "fdatasync" };
    sync.mockImplementation(() => Promise.reject(Object.assign(new Error("ENOSPC: no space left on device"), full)));
    const refused = await world.ask("write", { ...wish, base: body.base, result: body.result });
    expect(sync).toHaveBeenCalled();
    expect(refused).toMatchObject({
      status: 422,
      body: { ok: false, reason: expect.stringContaining("ENOSPC"), remedy: expect.stringMatching(/\bdf\b/) },
    });
    expect(readdirSync(world.folder.file("conf.d"))).toEqual([]);
  },
);
