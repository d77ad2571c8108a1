// A restart of the agent loses no value, on servers with different stacks. One of them cannot transfer subscriptions.
import { statSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { asyncua } from "../support/asyncua.ts";
import { eventually } from "../support/eventually.ts";
import { gopcua } from "../support/gopcua.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { open62541 } from "../support/open62541.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

interface Server extends AsyncDisposable {
  readonly url: string;
  set(value: number): Promise<void> | void;
  count(): Promise<{ readonly sessions: number; readonly subscriptions: number }>;
}

const servers: Readonly<Record<string, () => Promise<Server>>> = {
  async "node-opcua-server"() {
    const server = await opcuaServer({ folder: folder.file("node-opcua"), secure: true });
    return {
      url: server.url,
      set: (value) => {
        server.set("Count", value);
        return eventually(() => server.counted.has(value)).then(() => {});
      },
      count: async () => ({ sessions: server.sessions, subscriptions: server.subscriptions }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
  async asyncua() {
    const server = await asyncua({ folder: folder.file("asyncua") });
    return { ...server, set: (value) => server.set("Count", value) };
  },
  async open62541() {
    const server = await open62541();
    // The server samples, so each value has to last longer than the sampling interval.
    const set = async (value: number) => {
      server.set("Count", value);
      await server.count();
      await new Promise((resolve) => setTimeout(resolve, 150));
    };
    return { ...server, set };
  },
};

const security = [{ mode: "none" }, { mode: "signAndEncrypt" }];
const cases = Object.keys(servers).flatMap((name) => security.map((mode) => [name, mode] as const));

test.each(cases.filter(([name, { mode }]) => name !== "open62541" || mode === "none"))(
  "a restart loses no value at %s, %o",
  async (name, mode) => {
    await using server = await (servers[name] as () => Promise<Server>)(); // `name` is a key of `servers`
    const stateDir = folder.file(`${name} ${mode.mode}`);
    const setup = { stateDir, options: { url: server.url, security: mode }, tags: [{ path: "Line/Count" }] };
    const numbers: number[] = [];
    const countTo = async (last: number) => {
      for (let value = (numbers.at(-1) ?? 0) + 1; value <= last; value++) {
        numbers.push(value);
        await server.set(value);
      }
    };
    const seen = new Set<unknown>();
    for (const round of [1, 2, 3]) {
      await using line = collect(await openTrusting(setup));
      expect(line.source.details?.()).toMatchObject({ subscription: round === 1 ? "new" : "kept" });
      await eventually(() => line.values(0).length > 0);
      await countTo(round * 10 - 5);
      await eventually(() => {
        for (const value of line.values(0)) seen.add(value);
        return numbers.every((value) => seen.has(value));
      });
      await line[Symbol.asyncDispose]();
      expect(statSync(`${stateDir}/session.json`).mode & 0o777).toBe(0o600);
      // The agent is stopped during these changes.
      await countTo(round * 10);
    }
    // A final stop leaves the server as it was before.
    const last = await openTrusting({ ...setup, final: true });
    expect(await server.count()).toEqual({ sessions: 1, subscriptions: 1 });
    await last[Symbol.asyncDispose]();
    await eventually(async () => {
      const { sessions, subscriptions } = await server.count();
      return sessions === 0 && subscriptions === 0;
    });
  },
  300_000,
);

test("at gopcua, whose subscriptions end with the connection, a restart is a gap, and current values arrive again", async () => {
  await using server = await gopcua();
  const stateDir = folder.file("gopcua");
  const setup = { stateDir, options: { url: server.url, security: { mode: "none" } }, tags: [{ path: "Line/Count" }] };
  {
    await using line = collect(await openOpcuaSource(setup));
    server.set("Count", 1);
    await line.reading(({ value }) => value === 1);
  }
  for (const value of [2, 3]) server.set("Count", value);
  await server.count();
  await using line = collect(await openOpcuaSource({ ...setup, final: true }));
  await line.reading(({ value }) => value === 3);
  await eventually(() => line.gaps.some(({ cause, state }) => cause === "interruption" && state === "lost"));
  expect(line.values(0)).not.toContain(2);
  await line[Symbol.asyncDispose]();
  await eventually(async () => (await server.count()).subscriptions === 0);
  expect(await server.count()).toEqual({ sessions: 0, subscriptions: 0 });
}, 120_000);
