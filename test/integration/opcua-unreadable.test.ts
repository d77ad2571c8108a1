// A value that makes any answer fail costs no other node, and is named with its reason.
import { DataType } from "node-opcua-client";
import { expect, test, vi } from "vitest";
import { largestMessageBytes } from "../../src/source/opcua/stack/stack.ts";
import { eventually } from "../support/eventually.ts";
import { answerProxy, type Change } from "../support/opcua-answers.ts";
import { lineNamespace, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

vi.setConfig({ testTimeout: 120_000 });

const marker = "in every answer with this text";
const node = (name: string) => ({ node: `nsu=${lineNamespace};s=${name}` });
const tooLarge = expect.stringMatching(/larger than the agent or the server allows \(BadResponseTooLarge/);

/** The type of the String with the marker becomes one that no decoder knows. */
const retype = (type: number) => (body: Buffer) => {
  const changed = Buffer.from(body);
  for (let at = changed.indexOf(marker); at > 0; at = changed.indexOf(marker, at + 1)) changed[at - 5] = type;
  return changed;
};

async function line(how: Change) {
  const folder = temporaryFolder();
  const server = await opcuaServer({ folder: folder.file("server") });
  server.add("Marked", { dataType: DataType.String, value: marker });
  server.add("Other", 7);
  const change = (body: Buffer) => (body.includes(marker) ? how : undefined);
  const network = await answerProxy(server.port, change, largestMessageBytes);
  const runtime = testRuntime();
  const open = async (more: object = {}) =>
    collect(
      await openOpcuaSource({
        stateDir: folder.file("state"),
        options: { url: `opc.tcp://127.0.0.1:${network.port}`, security: { mode: "none" }, ...more },
        tags: [node("Temp"), node("Marked"), node("Other")],
        runtime,
      }),
    );
  return {
    server,
    network,
    runtime,
    open,
    async [Symbol.asyncDispose]() {
      network[Symbol.dispose]();
      await server[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

test.each<{ what: string; how: Change; mode: string; reason: unknown }>([
  { what: "too large", how: "inflate", mode: "subscribe", reason: tooLarge },
  { what: "too large", how: "inflate", mode: "poll", reason: tooLarge },
  { what: "aborted by the server as too large", how: "abort", mode: "subscribe", reason: tooLarge },
  {
    what: "not decodable",
    how: retype(63),
    mode: "poll",
    reason: "the answer with this value cannot be read (BadDecodingError)",
  },
  {
    what: "not decodable",
    how: retype(63),
    mode: "subscribe",
    reason: "the answer with this value cannot be read (BadDecodingError)",
  },
])("a value whose answers are $what costs no other node in mode $mode", async ({ how, mode, reason }) => {
  await using setup = await line(how);
  const { server, network, runtime } = setup;
  await using agent = await setup.open({ mode });
  const marked = await agent.reading(({ tag }) => tag === 1);
  expect(marked).toMatchObject({ quality: "bad", reason });
  server.set("Temp", 21);
  await eventually(() => agent.values(0).includes(21) && agent.values(2).includes(7));
  expect(agent.source.details?.()).toMatchObject({ failed: 1 });
  expect(runtime.lines).toContainEqual(
    expect.objectContaining({ message: "a node cannot be read", fields: expect.objectContaining({ reason }) }),
  );
  // The node is monitored and polled no more.
  const { changed } = network;
  for (const value of [22, 23, 24]) {
    server.set("Temp", value);
    await eventually(() => agent.values(0).includes(value));
  }
  expect(network.changed).toBe(changed);
  expect(await agent.source.check?.(AbortSignal.timeout(60_000))).toMatchObject({
    refused: [{ tag: 1, message: expect.stringContaining("got the ") }],
  });
});

test("a value of a reserved type costs no other node", async () => {
  await using setup = await line(retype(26));
  await using agent = await setup.open({ mode: "poll" });
  await eventually(() => agent.values(0).includes(20) && agent.values(2).includes(7));
  expect(await agent.reading(({ tag }) => tag === 1)).toMatchObject({ quality: "bad" });
});

/** The type of CreateMonitoredItemsResponse (OPC 10000-6, A.2), as a NodeId of four bytes. */
const createdItems = Buffer.from([1, 0, 754 & 255, 754 >> 8]);

test.each<{ what: string; how: Change }>([
  { what: "not decodable", how: (body) => body.subarray(0, 40) },
  { what: "aborted", how: "abort" },
])("items whose creation has an answer that is $what are at the server once", async ({ how }) => {
  using folder = temporaryFolder();
  await using server = await opcuaServer({ folder: folder.file("server") });
  let broken = 0;
  const change = (body: Buffer) => (body.indexOf(createdItems) === 0 && broken-- > 0 ? how : undefined);
  using network = await answerProxy(server.port, change, largestMessageBytes);
  const url = `opc.tcp://127.0.0.1:${network.port}`;
  const options = { url, security: { mode: "none" }, subscription: { keepAlive: "300ms" } };
  const setup = { stateDir: folder.file("state"), options };
  {
    await using agent = collect(await openOpcuaSource({ ...setup, tags: [node("Temp")] }));
    await agent.reading(({ tag }) => tag === 0);
  }
  broken = 1;
  // As the agent does, until the source is connected.
  const source = await eventually(() =>
    openOpcuaSource({ ...setup, tags: ["Temp", "Count", "Big"].map((name) => node(name)) }),
  );
  await using agent = collect(source);
  for (const tag of [0, 1, 2]) await agent.reading((reading) => reading.tag === tag);
  expect(network.changed).toBe(1);
  await eventually(() => server.monitored === 3);
});
