// Commands leave no session or subscription at a server. Four servers on different stacks count them.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { asyncua } from "../support/asyncua.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { gopcua } from "../support/gopcua.ts";
import { putKey } from "../support/opcua-key.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { open62541 } from "../support/open62541.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

interface Counted {
  readonly sessions: number;
  readonly subscriptions: number;
}
interface Server extends AsyncDisposable {
  readonly url: string;
  count(): Promise<Counted>;
}

const servers: Readonly<Record<string, () => Promise<Server>>> = {
  async "node-opcua-server"() {
    const server = await opcuaServer({ folder: folder.file("node-opcua") });
    const count = async () => ({ sessions: server.sessions, subscriptions: server.subscriptions });
    return { url: server.url, count, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  },
  asyncua: () => asyncua({ folder: folder.file("asyncua") }),
  // It allows one subscription. One that is left behind would block every other client.
  open62541: () => open62541({ mostSubscriptions: 1 }),
  // Its subscriptions outlive their session and have to be deleted explicitly.
  gopcua: () => gopcua(),
};

async function configured(name: string, url: string): Promise<string> {
  const place = folder.file(`agent-${name}`);
  await putKey("agent", join(place, "pki"));
  const file = join(place, "tagferry.yaml");
  const tags = "tags: [{ input: a, path: Line/Temp }, { input: b, node: 'ns=9;s=Nope' }]";
  writeFileSync(
    file,
    `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(place)} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
  line: { type: opcua, url: "${url}", security: { mode: none }, ${tags} }
`,
  );
  return file;
}

test.each(Object.keys(servers))(
  "browse, check --online and test leave no session and no subscription at %s",
  async (name) => {
    await using server = await (servers[name] as () => Promise<Server>)(); // `name` is a key of `servers`
    const { url } = server;
    const file = await configured(name, url);
    const none = { sessions: 0, subscriptions: 0 };
    expect(await server.count()).toEqual(none);
    for (const args of [
      ["browse", url],
      ["browse", "-c", file, "--source", "line"],
      ["browse", url, "--endpoints"],
      ["check", "--online", "-c", file],
      ["test", "--once", "-c", file, "--within", "10s"],
    ]) {
      const ended = await command(args);
      expect(await server.count(), args.join(" ")).toEqual(none);
      if (args.length > 2 && args[0] !== "check") continue;
      expect(ended.stdout).toContain(args[0] === "check" ? "line" : "Temp");
    }
    // ^C while the command runs.
    const stop = new AbortController();
    const going = command(["test", "-c", file], { signal: stop.signal, print: () => stop.abort(new Error("^C")) });
    await going;
    expect(await server.count()).toEqual(none);

    const options = { url, security: { mode: "none" } };
    const tags = [{ path: "Line/Temp" }];
    await using line = collect(await openOpcuaSource({ stateDir: folder.file(`state-${name}`), options, tags }));
    await line.reading(({ quality }) => quality === "good");
    expect(line.source.details?.()).toMatchObject({ items: 1, polled: 0 });
    await eventually(async () => (await server.count()).subscriptions === 1);
  },
  300_000,
);

test("lifetime and keep-alive stay as configured when the server publishes at its own interval", async () => {
  await using server = await open62541({ fastestPublishing: 25_000 });
  const setup = { stateDir: folder.file("slow"), options: { url: server.url, security: { mode: "none" } } };
  await using source = await openOpcuaSource({ ...setup, tags: [{ path: "Line/Temp" }] });
  expect(source.details?.()).toMatchObject({
    publishing: "25000 ms (asked for 100 ms)",
    keepAlive: "75000 ms",
    lifetime: "1800000 ms",
  });
}, 300_000);
