// Tags of an OPC UA server are found, shown as a difference and written, as the page does it.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Answer, type DiscoverWorld, discoverWorld } from "../../support/discover-world.ts";
import { guest, lineNamespace, type OpcuaServer, opcuaServer, user } from "../../support/opcua-server.ts";
import { expectMode } from "../../support/platform.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const folder = temporaryFolder();
let server: OpcuaServer;
beforeAll(async () => {
  server = await opcuaServer({ folder: folder.path, secure: true });
  server.set("Temp", 21.5);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** The look, and the nodes below `Line`. */
async function lineOf(world: DiscoverWorld, wish: object = { securityMode: "none" }) {
  const opened = await world.ask("open", { url: server.url, ...wish });
  expect(opened.body.reason).toBeUndefined();
  expect(opened).toMatchObject({ status: 200, body: { ok: true, tree: true } });
  const { look } = opened.body;
  const top = await world.ask("list", { look });
  const line = top.body.nodes.find(({ name }: { name: string }) => name === "Line");
  expect(line.branch).toBe(true);
  const { body } = await world.ask("list", { look, under: line.key });
  return { look, nodes: body.nodes, line };
}

const chosen = (nodes: readonly { readonly name: string }[], ...names: readonly string[]) =>
  nodes
    .filter(({ name }) => names.includes(name))
    .map(({ key: _key, branch: _branch, type: _type, ...node }: Record<string, unknown> & { name: string }) => node);

const credentials = { username: user.name, password: user.password };

/** Logs in over a secure channel, after the certificate was compared. */
async function compared(world: Pick<DiscoverWorld, "ask">) {
  const { body } = await world.ask("open", { url: server.url, ...credentials });
  expect(body).toMatchObject({
    ok: false,
    decision: { kind: "certificate", certificate: { subject: expect.any(String) } },
  });
  const { certificate } = body.decision;
  // Another certificate than the compared one has to be compared, too.
  const other = await world.ask("open", { url: server.url, ...credentials, trust: "0".repeat(64) });
  expect(other.body).toMatchObject({ ok: false, decision: { certificate } });
  return { ...credentials, trust: certificate.sha256 };
}

test("a branch is listed when it is opened, with values that follow the server", async () => {
  await using world = await discoverWorld();
  const { look, nodes, line } = await lineOf(world);
  const temp = nodes.find(({ name }: { name: string }) => name === "Temp");
  expect(temp).toMatchObject({
    value: 21.5,
    type: "Double",
    path: ["Line", "Temp"],
    address: `nsu=${lineNamespace};s=Temp`,
  });
  server.set("Temp", 22.5);
  const { body } = await world.ask("values", { look, keys: [temp.key] });
  expect(body.values).toEqual({ [temp.key]: 22.5 });
  server.set("Temp", 21.5);
  const found = await world.ask("list", { look, under: line.key, search: "tem p" });
  expect(found.body.nodes.map(({ name }: { name: string }) => name)).toEqual(["Temp"]);
  // From the top, the branches below are searched, too.
  const below = (await world.ask("list", { look, search: "line temp" })).body;
  expect(below.nodes.map(({ path, value }: { path: string[]; value: number }) => [path, value])).toEqual([
    [["Line", "Temp"], 21.5],
  ]);
  expect(below.notes).toEqual([expect.stringMatching(/^all \d+ nodes below this branch were searched$/)]);
  expect(await world.ask("close", { look })).toMatchObject({ status: 200 });
  expect(await world.ask("list", { look })).toMatchObject({ status: 410 });
});

test("a new source is shown as a difference, written as shown, and valid", async () => {
  await using world = await discoverWorld();
  const { look, nodes } = await lineOf(world);
  const wish = { look, name: "press", template: "{source}.{name}", nodes: chosen(nodes, "Temp", "Count") };
  const { body } = await world.ask("propose", wish);
  const file = world.folder.file("conf.d/press.yaml");
  expect(body).toMatchObject({
    ok: true,
    file,
    isNew: true,
    inputs: ["press.Temp", "press.Count"],
    errors: [],
    base: "none",
  });
  expect(existsSync(file)).toBe(false);
  expect(body.difference).toMatch(
    /^--- \/dev\/null\n\+\+\+ .*press\.yaml\n@@ -0,0 \+1,\d @@\n\+sources:\n\+ {2}press:/,
  );
  const written = await world.ask("write", { ...wish, base: body.base, result: body.result });
  expect(written).toMatchObject({ status: 200, body: { ok: true, reload: { ok: true } } });
  const text = readFileSync(file, "utf8");
  expect(body.difference).toContain(text.trimEnd().replaceAll(/^/gm, "+"));
  expect(text).toContain(`- { input: press.Temp, node: nsu=${lineNamespace};s=Temp }`);
  expectMode(file, 0o644);
});

test("tags are added to an existing source, and every other line stays as it is", async () => {
  const before = `sources:
  # the press in hall 3
  press:    # since 2019
    type: opcua
    url: ${server.url}
    password: canary-literal   # never shown
    username: reader
    security: {  mode: signAndEncrypt }
    tags:
      # the temperature
      - { input: "press.t",   node: "nsu=${lineNamespace};s=Temp" }  # °C

# the end
`;
  await using world = await discoverWorld();
  const file = world.folder.file("conf.d/plant.yaml");
  writeFileSync(file, before.replace("canary-literal", user.password), { mode: 0o640 });
  const refused = await world.ask("open", { source: "press" });
  expect(refused.status).toBe(422);
  const [{ sha256 }] = refused.body.waiting;
  expect(await world.ask("trust", { sha256, decision: "accept" })).toMatchObject({
    status: 200,
    body: { waiting: [] },
  });
  const opened = await world.ask("open", { source: "press" });
  expect(opened.body.reason).toBeUndefined();
  expect(opened).toMatchObject({ status: 200, body: { ok: true, source: "press" } });
  const { look } = opened.body;
  const top = await world.ask("list", { look });
  const { key } = top.body.nodes.find(({ name }: { name: string }) => name === "Line");
  const { nodes } = (await world.ask("list", { look, under: key })).body;
  writeFileSync(file, before);
  const wish = { look, nodes: chosen(nodes, "Count", "Temp") };
  const { body } = await world.ask("propose", wish);
  expect(body.inputs).toEqual(["Line.Temp", "Line.Count"]);
  expect(body.warnings[0]).toBe("recorded already, and twice with this change: press.t");
  expect(JSON.stringify(body)).not.toContain("canary");
  const { status } = await world.ask("write", { ...wish, base: body.base, result: body.result });
  expect(status).toBe(200);
  const tags = ["Temp", "Count"].map(
    (name) => `      - { input: Line.${name}, node: nsu=${lineNamespace};s=${name} }\n`,
  );
  expect(readFileSync(file, "utf8")).toBe(before.replace("# °C\n", `# °C\n${tags.join("")}`));
  expectMode(file, 0o640);
});

test("a file that was changed after the difference was shown is not written", async () => {
  await using world = await discoverWorld();
  const { look, nodes } = await lineOf(world);
  const wish = { look, name: "press", nodes: chosen(nodes, "Temp") };
  const { body } = await world.ask("propose", wish);
  const file = world.folder.file("conf.d/press.yaml");
  const foreign = "sources: {}\n";
  writeFileSync(file, foreign);
  const late = await world.ask("write", { ...wish, base: body.base, result: body.result });
  expect(late).toMatchObject({
    status: 422,
    body: { ok: false, reason: `${file} is there already`, remedy: "choose another name" },
  });
  expect(readFileSync(file, "utf8")).toBe(foreign);
});

test("of two pages that add to one source, the second gets a new difference", async () => {
  await using world = await discoverWorld();
  const file = world.folder.file("conf.d/press.yaml");
  writeFileSync(
    file,
    `sources:\n  press:\n    type: opcua\n    url: ${server.url}\n    security: { mode: none }\n    tags: []\n`,
  );
  const looks = await Promise.all([1, 2].map(() => world.ask("open", { source: "press" })));
  const { nodes } = await lineOf(world);
  const wishes = looks.map(({ body }, i) => ({ look: body.look, nodes: chosen(nodes, i === 0 ? "Temp" : "Count") }));
  const shown = await Promise.all(wishes.map((wish) => world.ask("propose", wish)));
  const sent = await Promise.all(
    wishes.map((wish, i) => world.ask("write", { ...wish, base: shown[i]?.body.base, result: shown[i]?.body.result })),
  );
  expect(sent.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  const lost = sent.findIndex(({ status }) => status === 409);
  const { proposal } = sent[lost]?.body ?? {};
  expect(proposal.difference).toContain(lost === 0 ? "input: Line.Temp" : "input: Line.Count");
  const again = await world.ask("write", { ...wishes[lost], base: proposal.base, result: proposal.result });
  expect(again.status).toBe(200);
  const text = readFileSync(file, "utf8");
  expect(text).toContain("Line.Temp");
  expect(text).toContain("Line.Count");
});

test("a configuration that would be invalid is not written, and the errors name the lines", async () => {
  await using world = await discoverWorld();
  const { look, nodes } = await lineOf(world);
  const twice = chosen(nodes, "Temp", "Count").map((node) => ({ ...node, input: "same" }));
  const wish = { look, name: "press", nodes: twice };
  const { body } = await world.ask("propose", wish);
  expect(body.errors.join("\n")).toMatch(/press\.yaml:\d+:\d+/);
  const refused = await world.ask("write", { ...wish, base: body.base, result: body.result });
  expect(refused).toMatchObject({ status: 422, body: { reason: expect.stringContaining("nothing was written") } });
  expect(existsSync(body.file)).toBe(false);
});

test("what the agent refuses at the reload is taken back", async () => {
  let reloads = 0;
  const reload = async () => ({ ok: ++reloads > 1, reason: "the source did not stop" });
  await using world = await discoverWorld({ reload });
  const { look, nodes } = await lineOf(world, await compared(world));
  const wish = { look, name: "press", nodes: chosen(nodes, "Temp") };
  const { body } = await world.ask("propose", wish);
  const refused = await world.ask("write", { ...wish, base: body.base, result: body.result });
  expect(refused).toMatchObject({ status: 422, body: { reason: expect.stringContaining("did not stop") } });
  expect([existsSync(body.file), existsSync(body.secretFile), reloads]).toEqual([false, false, 2]);
});

test("a user name without a password logs in with an empty one, which the new source names", async () => {
  await using world = await discoverWorld();
  // Without security its encryption needs a certificate that was compared.
  const plain = await world.ask("open", { url: server.url, username: guest, securityMode: "none" });
  expect(plain.body).toMatchObject({ ok: false, decision: { kind: "certificate" } });
  const trust = plain.body.decision.certificate.sha256;
  const { look, nodes } = await lineOf(world, { username: guest, securityMode: "none", trust });
  const wish = { look, name: "press", nodes: chosen(nodes, "Temp") };
  const { body } = await world.ask("propose", wish);
  expect(body).toMatchObject({ errors: [], difference: expect.stringContaining('+    password: ""\n') });
  expect(body.secretFile).toBeUndefined();
});

test("a typed password goes into a file that only the agent may read, and into no answer and no log", async () => {
  await using world = await discoverWorld();
  const answers: Answer[] = [];
  const { ask } = world;
  const recorded = {
    ...world,
    ask: async (...given: Parameters<typeof ask>) => {
      const answer = await ask(...given);
      answers.push(answer);
      return answer;
    },
  };
  const { look, nodes } = await lineOf(recorded, await compared(recorded));
  const wish = { look, name: "press", nodes: chosen(nodes, "Temp") };
  const { body } = await recorded.ask("propose", wish);
  expect(body.difference).toContain(
    "+    password: ${file:press_password}".replace("${file:press_password}", '"${file:press_password}"'),
  );
  expect((await recorded.ask("write", { ...wish, base: body.base, result: body.result })).status).toBe(200);
  expect(readFileSync(body.secretFile, "utf8")).toBe(`${user.password}\n`);
  expectMode(body.secretFile, 0o600);
  expect(JSON.stringify([answers, world.runtime.lines])).not.toContain(user.password);
});
