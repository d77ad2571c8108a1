// Servers that are reached through a proxy, and servers that do not answer where they should refuse.
import { afterAll, expect, test } from "vitest";
import { beforeRequest } from "../support/opcua-requests.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());
const security = { mode: "none" };
const tags = [{ path: "Line/Temp" }];

test("a server silent about an unknown session gets a new one at the first attempt", async () => {
  let ignores = false;
  let sessions = 0;
  await using server = await opcuaServer({
    folder: folder.file("ignores"),
    meddle(changed) {
      beforeRequest(changed, "CreateSession", () => {
        sessions++;
        ignores = false;
        return true;
      });
      beforeRequest(changed, "ActivateSession", () => !ignores);
    },
  });
  const setup = { stateDir: folder.file("state"), options: { url: server.url, security }, tags };
  await (await openOpcuaSource(setup))[Symbol.asyncDispose]();
  ignores = true;
  const hurried = { ...setup, options: { ...setup.options, timeout: "1500ms" } };
  await using line = collect(await openOpcuaSource(hurried));
  await line.reading(({ quality }) => quality === "good");
  expect(sessions).toBe(2);
});

test("a server that lists no endpoints for a forwarded port is asked with its own address, over that port", async () => {
  let own = "";
  await using server = await opcuaServer({
    folder: folder.file("forwarded"),
    meddle(changed) {
      beforeRequest(changed, "GetEndpoints", ({ request }) => {
        hidden = request.endpointUrl !== own;
        return true;
      });
      const listed = changed.findMatchingEndpoints.bind(changed);
      changed.findMatchingEndpoints = (url) => (hidden ? [] : listed(url));
    },
  });
  let hidden = false;
  own = server.url;
  await using forward = await tcpProxy(server.port);
  const options = { url: `opc.tcp://127.0.0.1:${forward.port}`, security };
  await using line = collect(await openOpcuaSource({ stateDir: folder.file("behind"), options, tags }));
  await line.reading(({ quality }) => quality === "good");
  expect(forward.connections).toBeGreaterThan(0);
});
