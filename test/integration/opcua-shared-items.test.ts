// Tags of one variable share a monitored item: the server sends the variable once for all of them.
import { expect, test, vi } from "vitest";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, type OpcuaServer, opcuaServer } from "../support/opcua-server.ts";
import { collect, openTrusting } from "../support/opcua-source.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

vi.setConfig({ testTimeout: 120_000 });

const length = 10_500;
const bytesPerArray = 8 * length;
const element = (index: number) => ({ node: `nsu=${lineNamespace};s=List`, index });
const elements = (count: number) => Array.from({ length: count }, (_, index) => element(index));

/** Sets element i of List to `base` + i. */
const fill = (server: OpcuaServer, base: number, at?: Date) =>
  server.set(
    "List",
    Float64Array.from({ length }, (_, i) => base + i),
    at,
  );

async function line() {
  const folder = temporaryFolder();
  const server = await opcuaServer({ folder: folder.file("server"), secure: true });
  const network = await tcpProxy(server.port);
  fill(server, 0);
  const options = { url: `opc.tcp://127.0.0.1:${network.port}`, security: { mode: "none" } };
  const open = async (tags: readonly object[], more: object = {}, collecting: { acknowledge?: boolean } = {}) =>
    collect(
      await openTrusting({
        stateDir: folder.file("state"),
        options: { ...options, ...more },
        tags: tags.map((tag) => ({ ...tag })),
      }),
      collecting,
    );
  return {
    server,
    network,
    open,
    async [Symbol.asyncDispose]() {
      await network[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

test("fifty tags of one array receive each change of it once", async () => {
  await using setup = await line();
  const { server, network } = setup;
  const tags = 50;
  await using agent = await setup.open([...elements(tags), { ...element(3), every: 1_000 }]);
  await eventually(() => agent.values(tags - 1).includes(tags - 1) && agent.values(tags).includes(3));
  // One for the fast tags, one for the slow one.
  expect(server.monitored).toBe(2);
  expect(agent.source.details?.()).toMatchObject({ items: tags + 1 });
  const changes = 10;
  const before = network.carried.down;
  const at = new Date(Date.now() - 1_000);
  for (let change = 1; change <= changes; change++) {
    fill(server, change * length, at);
    await eventually(() => agent.values(tags - 1).includes(change * length + tags - 1));
  }
  await eventually(() => agent.values(tags).includes(changes * length + 3));
  for (let tag = 0; tag < tags; tag++) {
    const values = Array.from({ length: changes + 1 }, (_, change) => change * length + tag);
    expect(agent.values(tag)).toEqual(values);
    expect(agent.readings.find((reading) => reading.tag === tag && reading.value === length + tag)).toMatchObject({
      time: at.getTime() * 1_000,
      clock: "device",
      quality: "good",
    });
  }
  // Each change once for the fast tags, and at most once for the slow one; keep-alives and the like.
  expect(network.carried.down - before).toBeLessThan(3 * changes * bytesPerArray);
});

test("a tag added to a kept monitored item gets its first value, and one that comes back has a gap", async () => {
  await using setup = await line();
  const { server } = setup;
  {
    await using agent = await setup.open([element(1), element(2)]);
    await eventually(() => agent.values(1).includes(2));
  }
  {
    // While the agent is stopped, the server keeps what changes.
    fill(server, length);
    await using agent = await setup.open([element(1), element(7)]);
    expect(agent.source.details?.()).toMatchObject({ subscription: "kept", items: 2 });
    await eventually(() => agent.values(0).includes(length + 1) && agent.values(1).includes(length + 7));
    // Element 2 is not monitored meanwhile.
    fill(server, 2 * length);
    await eventually(() => agent.values(0).includes(2 * length + 1) && agent.values(1).includes(2 * length + 7));
  }
  await using agent = await setup.open([element(1), element(2), element(7)]);
  expect(agent.source.details?.()).toMatchObject({ subscription: "kept", items: 3 });
  await eventually(() => agent.values(1).includes(2 * length + 2));
  await eventually(() => agent.gaps.some(({ tag, state }) => tag === 1 && state === "lost"));
  expect(agent.gaps.filter(({ tag }) => tag !== 1)).toEqual([]);
  fill(server, 3 * length);
  await eventually(() => [0, 1, 2].every((tag) => agent.values(tag).includes(3 * length + [1, 2, 7][tag]!)));
});

test.each([
  { ended: "session and subscription are kept", end: () => {}, subscription: "kept" },
  {
    ended: "the session ended",
    end: ({ server }: { server: OpcuaServer }) => server.endSessions("kept"),
    subscription: "transferred",
  },
])(
  "values of an array arrive for each of its tags after an interruption in which $ended",
  async ({ end, subscription }) => {
    await using setup = await line();
    const { server } = setup;
    const options = { security: { mode: "sign" }, subscription: { keepAlive: "500ms" } };
    // A single value gives more readings than the agent queues at once.
    const tags = [...elements(length), { node: `nsu=${lineNamespace};s=Temp` }];
    const last = length - 1;
    {
      await using agent = await setup.open(tags, options);
      await eventually(() => agent.values(last).includes(last) && server.unacknowledged === 0, 30_000);
    }
    const unacknowledged = [1, 2].map((change) => change * length);
    {
      await using agent = await setup.open(tags, options, { acknowledge: false });
      for (const base of unacknowledged) {
        fill(server, base);
        await eventually(() => agent.values(last).includes(base + last), 30_000);
      }
    }
    end(setup);
    await using agent = await setup.open(tags, options);
    expect(agent.source.details?.()).toMatchObject({ subscription });
    await eventually(() => unacknowledged.every((base) => agent.values(last).includes(base + last)), 30_000);
    const arrived = Map.groupBy(agent.readings, ({ tag }) => Number(tag));
    for (let tag = 0; tag < length; tag++)
      expect(arrived.get(tag)?.map(({ value }) => value)).toEqual(
        expect.arrayContaining(unacknowledged.map((base) => base + tag)),
      );
    expect(agent.gaps.filter(({ state }) => state === "lost")).toEqual([]);
  },
);

test("polled tags of one array are read once for each poll", async () => {
  await using setup = await line();
  const { server, network } = setup;
  await using agent = await setup.open(elements(50), { mode: "poll" });
  await eventually(() => agent.values(49).includes(49));
  const before = network.carried.down;
  const polls = 10;
  for (let poll = 1; poll <= polls; poll++) {
    fill(server, poll * length);
    await eventually(() => agent.values(49).includes(poll * length + 49));
  }
  // Each poll may wait for several intervals, but not for fifty.
  expect(network.carried.down - before).toBeLessThan(25 * polls * bytesPerArray);
});
