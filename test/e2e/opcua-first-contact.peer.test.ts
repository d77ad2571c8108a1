// The first steps with OPC UA servers on third-party stacks, each behind a forwarded port: init, check --online, test,
// run, status.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { startAgent } from "../support/agent-process.ts";
import { asyncua } from "../support/asyncua.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { gopcua } from "../support/gopcua.ts";
import { putKey, serverIdentity } from "../support/opcua-key.ts";
import { open62541 } from "../support/open62541.ts";
import { integration, password, testService } from "../support/service.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

interface Server extends AsyncDisposable {
  readonly port: number;
  set(name: "Temp", value: number): Promise<void> | void;
}

const servers: Readonly<Record<string, (folder: string, secure: boolean) => Promise<Server>>> = {
  asyncua: (folder, secure) => asyncua({ folder, secure }),
  async open62541(folder, secure) {
    return await open62541(secure ? { identity: await serverIdentity(folder, "urn:open62541", "der") } : {});
  },
  async gopcua(folder, secure) {
    return await gopcua(secure ? { identity: await serverIdentity(folder, "urn:gopcua", "pem") } : {});
  },
};
const names = Object.keys(servers);

/** An agent that has never run, a service, and a server behind a forwarded port. */
async function plant(folder: TemporaryFolder, name: string, secure: boolean) {
  await using parts = new AsyncDisposableStack();
  // `name` is a key of `servers`
  const server = parts.use(await (servers[name] as (typeof servers)[string])(folder.file("server"), secure));
  const forward = parts.use(await tcpProxy(server.port));
  const service = parts.use(await testService());
  const data = folder.file("data");
  await putKey("agent", join(data, "pki"));
  const file = folder.file("tagferry.yaml");
  const environment = { STATE_DIRECTORY: data };
  const run = (args: readonly string[], answers?: readonly string[]) =>
    command(args, { variables: environment, ...(answers && { answers }) });
  const typed = async (line: string) => {
    const ended = await run([...line.split(" "), "-c", file]);
    return { ...ended, seen: ended.stdout + ended.stderr };
  };
  const owned = parts.move();
  return {
    url: `opc.tcp://127.0.0.1:${forward.port}`,
    file,
    service,
    run,
    typed,
    source: () => parse(readFileSync(file, "utf8")).sources.opcua as Readonly<Record<string, unknown>>,
    /** Runs the agent until the service has a new value of the server, and then `status`. */
    async runAndStatus() {
      const text = readFileSync(file, "utf8").replace("listen: 127.0.0.1:8421", "listen: 127.0.0.1:0");
      await using agent = await startAgent({ folder: folder.path, configuration: text, env: environment });
      await eventually(async () => (await agent.status()).sources[0]?.state === "online", 60_000);
      await server.set("Temp", 42.5);
      await eventually(async () => {
        const { tags, upload } = await agent.status();
        return tags.some(({ value }) => value === 42.5) && upload.backlogPoints === 0 && upload.points > 0;
      }, 60_000);
      return (await command(["status", "--url", agent.page])).stdout;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

test.each(names)(
  "%s without security, behind a forwarded port",
  async (name) => {
    using folder = temporaryFolder();
    await using site = await plant(folder, name, false);
    const { run, typed, file, url } = site;
    const start = ["gw1", site.service.url, integration, "", password, url];
    const init = await run(["init", "-c", file], [...start, "y", "", "y", ""]);
    expect(init, init.stderr).toMatchObject({ status: 0 });
    expect(init.stderr).toContain("The server offers no security: everything can be read and changed on the way.");
    expect(site.source()).toMatchObject({ url, security: { mode: "none" } });
    expect((await typed("check --online")).seen).toContain("opcua: answers");
    expect((await typed("test --once")).seen).toMatch(/Line\.Temp +20/);
    const status = await site.runAndStatus();
    expect(status).toMatch(/opcua .*online/);
    expect(status).toContain("no security: everything can be read and changed on the way");
  },
  300_000,
);

// gopcua lists endpoints with security, but no client can open a secure channel to it.
test.each(names.filter((name) => name !== "gopcua"))(
  "%s with a certificate that nobody has trusted, and a password",
  async (name) => {
    using folder = temporaryFolder();
    await using site = await plant(folder, name, true);
    const { run, typed, file, url } = site;
    const start = ["gw1", site.service.url, integration, "", password, url];
    const init = await run(["init", "-c", file], [...start, "n", "reader", "rope", "y", ""]);
    expect(init, init.stderr).toMatchObject({ status: 0 });
    const thumbprint = /thumbprint +([0-9a-f]{40})/.exec(init.stderr)?.[1] ?? "none";
    expect(init.stderr).toContain("is not trusted; compare it with the server's own");
    writeFileSync(file, readFileSync(file, "utf8").replace(/tags: \[\].*/, "tags: [{ input: temp, path: Line/Temp }]"));
    const refused = (await typed("check --online")).seen;
    expect(refused).toContain(`tagferry trust accept ${thumbprint} -c ${file}`);
    expect((await typed("trust list")).seen).toContain(`${thumbprint} (rejected)`);
    expect(await typed(`trust accept ${thumbprint}`)).toMatchObject({ status: 0 });
    expect((await typed("check --online")).seen).toContain("opcua: answers");
    expect((await typed("test --once")).seen).toMatch(/temp +20/);
    const status = await site.runAndStatus();
    expect(status).toMatch(/opcua .*online/);
    expect(status).not.toContain("no security");
  },
  300_000,
);

test.each(names)(
  "%s with a password over a channel without security",
  async (name) => {
    using folder = temporaryFolder();
    await using site = await plant(folder, name, true);
    const { typed, file, url } = site;
    const secret = (what: string, text: string) => {
      writeFileSync(folder.file(what), text);
      return folder.file(what);
    };
    const agent = `--name gw1 --service ${site.service.url} --integration ${integration}`;
    const source = `--source ${url} --security-mode none --username reader`;
    const secrets = `--password-file ${secret("service", password)} --source-password-file ${secret("line", "rope")}`;
    const init = await typed(`init --yes --offline ${agent} ${source} ${secrets}`);
    expect(init, init.seen).toMatchObject({ status: 0 });
    expect(site.source()).toMatchObject({ url, security: { mode: "none" }, username: "reader" });
    writeFileSync(file, readFileSync(file, "utf8").replace(/tags: \[\].*/, "tags: [{ input: temp, path: Line/Temp }]"));
    const refused = (await typed("check --online")).seen;
    expect(refused).toContain("the password has to be encrypted with the server's certificate");
    expect(refused).not.toMatch(/check the credentials|bad: bad|offers none/);
    const accept = /tagferry (trust accept [0-9a-f]{40}) -c/.exec(refused)?.[1] ?? "no command";
    expect(await typed(accept)).toMatchObject({ status: 0 });
    expect((await typed("check --online")).seen).toContain("opcua: answers");
    expect((await typed("test --once")).seen).toMatch(/temp +20/);
    const status = await site.runAndStatus();
    expect(status).toMatch(/opcua .*online/);
    expect(status).not.toContain("allowInsecurePassword");
  },
  300_000,
);
