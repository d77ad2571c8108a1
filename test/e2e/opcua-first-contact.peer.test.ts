// The first hour with OPC UA servers on stacks of their own, behind a forwarded port: init, check --online, test.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { asyncua } from "../support/asyncua.ts";
import { command } from "../support/command.ts";
import { putKey } from "../support/opcua-key.ts";
import { open62541 } from "../support/open62541.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

test.each([
  ["open62541", undefined],
  ["asyncua", undefined],
  ["asyncua", { name: "reader", password: "rope" }],
])(
  "init, check --online and test work at the first attempt: %s behind a forwarded port, %o",
  async (name, login) => {
    using folder = temporaryFolder();
    await using server = name === "asyncua" ? await asyncua({ folder: folder.file("server") }) : await open62541();
    await using forward = await tcpProxy(server.port);
    const data = folder.file("data");
    await putKey("agent", join(data, "pki"));
    const file = folder.file("tagferry.yaml");
    const run = (args: readonly string[], answers?: readonly string[]) =>
      command([...args, "-c", file], { variables: { STATE_DIRECTORY: data }, ...(answers && { answers }) });
    const url = `opc.tcp://127.0.0.1:${forward.port}`;
    const start = ["gw1", "", "c8ktonqsahsmemfs7lvg", "", "secret", url, "y"];
    // Of the one the certificate, of the other that there is no security; then the login, and to look.
    const { status } = await run(["init"], [...start, ...(login ? [login.name, login.password] : [""]), "y", ""]);
    expect(status).toBe(0);
    const { opcua } = parse(readFileSync(file, "utf8")).sources;
    expect(opcua).toMatchObject({ url, ...(name === "open62541" && { security: { mode: "none" } }) });
    expect((await run(["check", "--online"])).stdout).toContain("opcua: answers");
    expect((await run(["test", "--once"])).stdout).toMatch(/Line\.Temp +20/);
  },
  300_000,
);
