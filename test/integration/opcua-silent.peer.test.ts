// Networks and servers that do not answer, and how soon the agent recovers.
import { afterAll, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { beforeRequest } from "../support/opcua-requests.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());
const security = { mode: "none" };
const tags = [{ path: "Line/Temp" }];

test("a network that recovers during an attempt is noticed by the same attempt, although the first message was lost", async () => {
  await using server = await opcuaServer({ folder: folder.file("healed") });
  await using network = await tcpProxy(server.port);
  network.muteDevice();
  const options = { url: `opc.tcp://127.0.0.1:${network.port}`, security };
  const opening = openOpcuaSource({ stateDir: folder.file("greeted"), options, tags });
  await Promise.race([opening, eventually(() => network.swallowed > 0)]);
  network.restore();
  await using line = collect(await opening);
  await line.reading(({ quality }) => quality === "good");
});

test("first values missing from a new subscription are read", async () => {
  await using server = await opcuaServer({
    folder: folder.file("mute"),
    meddle: (changed) => beforeRequest(changed, "Publish", () => false),
  });
  const setup = { stateDir: folder.file("mute-state"), options: { url: server.url, security }, tags };
  await using line = collect(await openOpcuaSource(setup));
  await line.reading(({ quality }) => quality === "good");
});
