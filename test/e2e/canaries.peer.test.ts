// Every field that takes a secret holds a canary, and peers refuse, echo and fail.
// No canary may appear, in any encoding, in what the agent shows or leaves on disk.
import { spawnSync } from "node:child_process";
import { lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { opcuaServer } from "../support/opcua-server.ts";
import { scriptedBroker } from "../support/scripted-broker.ts";
import { fails, ScriptedService } from "../support/scripted-service.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const integration = "c8ktonqsahsmemfs7lv0";
/** Each contains characters that are encoded differently in an address, in base64 and in JSON. */
const canaries = {
  service: 'kanarie-service/1+"ä',
  mqtt: "kanarie-mqtt?2&=",
  told: "kanarie-told/7~",
  key: "kanarie-key:3%",
  opcua: "kanarie-opcua/4>",
  token: "kanarie-http-token-5",
  proxy: "kanarie-proxy-6",
  client: "kanarie-client/8+",
};

/** Every encoding in which a secret may appear: plain, in addresses, JSON, hexadecimal, and base64 at any alignment. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const inBase64 = [0, 1, 2].flatMap((before) => {
    // Only the base64 characters that do not depend on the bytes before and after the secret.
    const whole = Buffer.concat([Buffer.alloc(before), bytes])
      .toString("base64")
      .replace(/=+$/, "");
    const inner = whole.slice(Math.ceil((before * 4) / 3), Math.floor(((before + bytes.length) * 4) / 3));
    return [inner, inner.replaceAll("+", "-").replaceAll("/", "_")];
  });
  const hex = bytes.toString("hex");
  const json = JSON.stringify(secret).slice(1, -1);
  return [secret, encodeURIComponent(secret), encodeURI(secret), json, hex, hex.toUpperCase(), ...inBase64];
}

/** The canaries that occur in `text`, as `canary: form`. */
function found(text: string): string[] {
  return Object.entries(canaries).flatMap(([name, secret]) =>
    formsOf(secret)
      .filter((form) => text.includes(form))
      .map((form) => `${name}: ${form}`),
  );
}

test("the search finds a secret in every form", () => {
  const secret = canaries.service;
  const encoded = ["", "u", "us"].map((user) => Buffer.from(`${user}${secret}:`).toString("base64"));
  for (const text of [secret, encodeURIComponent(secret), JSON.stringify({ secret }), ...encoded])
    expect(found(`before ${text} after`), text).not.toEqual([]);
  expect(found(Buffer.from(secret).toString("hex"))).not.toEqual([]);
});

/** Everything that a running agent shows, by where it is shown. */
async function seenOf(agent: AgentProcess, folder: TemporaryFolder): Promise<Map<string, string>> {
  const seen = new Map([["log", JSON.stringify(agent.log)]]);
  for (const path of ["/", "/page.js", "/metrics", "/api/status", "/api/view", "/api/gaps", "/healthz", "/readyz"])
    seen.set(path, await (await fetch(new URL(path, agent.page))).text());
  const authorization = `Bearer ${canaries.token}`;
  const lines = await fetch(new URL("/api/log", agent.page), { headers: { authorization } });
  expect(lines.status).toBe(200);
  seen.set("/api/log", await lines.text());
  for (const part of ["cmdline", "environ"]) seen.set(part, readFileSync(`/proc/${agent.pid}/${part}`, "latin1"));
  const file = folder.file("tagferry.yaml");
  const bundle = folder.file("bundle.tar.gz");
  for (const args of [
    ["status", "--url", agent.page],
    ["check", "-c", file],
    ["security", "-c", file, "--url", agent.page],
    ["rejects", "list", "-c", file],
    ["support-bundle", "-c", file, "--url", agent.page, "-o", bundle],
  ]) {
    const { stdout, stderr } = await command(args);
    seen.set(args.join(" "), stdout + stderr);
  }
  seen.set("bundle", gunzipSync(readFileSync(bundle)).toString("latin1"));
  // The access token from the issuer may be on disk, because the agent needs it after a restart.
  for (const path of filesIn(folder.file("data")))
    if (lstatSync(path).isFile() && !path.endsWith("upload/token.json")) seen.set(path, readFileSync(path, "latin1"));
  return seen;
}

/** All files in `folder`, and the folder itself. */
function filesIn(folder: string): string[] {
  return [folder, ...readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name))];
}

/** Expects that only the owner has access. */
function expectPrivate(folder: string): void {
  const open = filesIn(folder).filter((path) => (lstatSync(path).mode & 0o077) !== 0);
  expect(open).toEqual([]);
}

function secretFiles(folder: TemporaryFolder): void {
  for (const [name, secret] of Object.entries(canaries)) writeFileSync(folder.file(name), secret, { mode: 0o600 });
}

async function httpServer(listener: RequestListener): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port, // bound to a TCP port
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const fixture = (name: string) => join(import.meta.dirname, "../fixtures/tls", name);

test("no secret is visible anywhere when devices and a service refuse every one and quote it", async () => {
  using folder = temporaryFolder();
  secretFiles(folder);
  // A key that is encrypted with another passphrase.
  const key = folder.file("key.pem");
  const { status } = spawnSync(
    "openssl",
    ["pkcs8", "-topk8", "-v2", "aes-128-cbc", "-passout", "pass:other"].concat([
      "-in",
      fixture("client-key.pem"),
      "-out",
      key,
    ]),
  );
  expect(status).toBe(0);
  await using service = await ScriptedService.open();
  let answered = 0;
  const told = () => `${service.seen.at(-1)?.headers.authorization} is user ${integration}:${canaries.service}`;
  service.otherwise = (exchange) => {
    const { response } = exchange;
    answered++;
    if (answered === 1) return void response.writeHead(401).end(JSON.stringify(service.seen.at(-1)?.headers));
    if (answered === 2) return void response.writeHead(200).end(told());
    return fails(-32602, { trace: told(), params: { "data.series": [told()] } })(exchange);
  };
  await using broker = await openMqttBroker({ credentials: { username: "me", password: "another" } });
  await using teller = await scriptedBroker((packet, client) => {
    if (packet.cmd !== "connect") return;
    const reasonString = `no user me with ${packet.password?.toString()}`;
    client.send({ cmd: "connack", reasonCode: 134, sessionPresent: false, properties: { reasonString } });
  });
  await using opcua = await opcuaServer({ folder: folder.file("pki"), anonymous: false });
  await using agent = await startAgent({
    folder: folder.path,
    configuration: `version: 1
agent: { name: gw, dataDir: ${folder.path}/data }
service:
  url: ${service.url}
  integration: ${integration}
  auth: { basic: { password: "\${file:service}" } }
http: { listen: "127.0.0.1:0", token: "\${file:token}" }
log: { level: debug }
sources:
  waves: { type: simulator, tags: [{ input: wave.sine }] }
  refused: { type: mqtt, url: "${broker.url}", username: me, password: "\${file:mqtt}", tags: [{ input: a, topic: a }] }
  told: { type: mqtt, url: "${teller.url}", username: me, password: "\${file:told}", tags: [{ input: b, topic: b }] }
  keyed:
    type: mqtt
    url: mqtts://127.0.0.1:1
    certFile: ${fixture("client.pem")}
    keyFile: ${key}
    keyPassphrase: "\${file:key}"
    tags: [{ input: c, topic: c }]
  line:
    type: opcua
    url: ${opcua.url}
    security: { mode: none }
    allowInsecurePassword: true
    username: reader
    password: "\${file:opcua}"
    tags: [{ input: d, node: "ns=1;s=Count" }]
`,
  });
  await eventually(async () => {
    const { sources, upload } = await agent.status();
    return upload.refusedPoints > 0 && sources.every(({ error, points }) => error ?? points > 0);
  }, 60_000);

  const seen = await seenOf(agent, folder);
  const hits = [...seen].flatMap(([where, text]) => found(text).map((hit) => `${where} has ${hit}`));
  expect(hits).toEqual([]);
  expect([...seen.keys()].some((name) => name.includes("rejects"))).toBe(true);
  expectPrivate(folder.file("data"));
  await expectNoDebugger(agent);
});

test("no secret is visible anywhere when a proxy and a token issuer quote what they refuse", async () => {
  using folder = temporaryFolder();
  secretFiles(folder);
  let asked = 0;
  await using proxy = await httpServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    asked++;
    response.writeHead(asked % 2 === 0 ? 407 : 502).end(JSON.stringify({ headers: request.headers, body }));
  });
  const apiUrl = "http://service.invalid/v1";
  const credentials = { type: "client-credentials", clientId: "gw1", clientSecret: canaries.client };
  writeFileSync(folder.file("credentials.json"), JSON.stringify({ apiUrl, integration, credentials }));
  await using agent = await startAgent({
    folder: folder.path,
    configuration: `version: 1
agent: { name: gw, dataDir: ${folder.path}/data }
service:
  url: ${apiUrl}
  integration: ${integration}
  proxy: "http://me:${canaries.proxy}@127.0.0.1:${proxy.port}"
  auth: { clientCredentials: { file: ${folder.path}/credentials.json } }
http: { listen: "127.0.0.1:0", token: "\${file:token}" }
sources: { waves: { type: simulator, tags: [{ input: wave.sine }] } }
`,
  });
  await eventually(async () => asked > 0 && (await agent.status()).upload.error !== undefined, 60_000);

  const seen = await seenOf(agent, folder);
  expect([...seen].flatMap(([where, text]) => found(text).map((hit) => `${where} has ${hit}`))).toEqual([]);
  expectPrivate(folder.file("data"));
});

/** Where Node handles SIGUSR1, the signal opens the inspector's port to every user of the machine. */
async function expectNoDebugger(agent: AgentProcess): Promise<void> {
  const status = readFileSync(`/proc/${agent.pid}/status`, "utf8");
  const caught = BigInt(`0x${/^SigCgt:\s+(\w+)/m.exec(status)?.[1]}`);
  expect(caught & (1n << 9n)).toBe(0n);
  process.kill(agent.pid, "SIGUSR1");
  expect((await agent.status()).agent.name).toBe("gw");
}
