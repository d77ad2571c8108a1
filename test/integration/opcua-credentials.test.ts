// The agent never sends a password to a server whose certificate is not verified, whatever the server claims.
import { X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type CommandOptions, command } from "../support/command.ts";
import { impostor } from "../support/opcua-impostor.ts";
import { putKey } from "../support/opcua-key.ts";
import { opcuaServer, user } from "../support/opcua-server.ts";
import { openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
let states = 0;
const state = () => folder.file(`state${++states}`);
const tags = [{ node: "nsu=urn:tagferry:test:line;s=Temp" }];
const login = { username: user.name, password: user.password };
const inClear = { security: { mode: "none" } };
afterAll(() => folder[Symbol.dispose]());

/** A server that the agent has never trusted. */
const rogue = async (options: { readonly anonymous?: boolean } = {}) => {
  const secrets = impostor();
  const server = await opcuaServer({ folder: folder.file("rogue"), secure: true, meddle: secrets.meddle, ...options });
  return { server, ...secrets, control: secrets, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
};

/** A configuration for the commands. Its source logs in at `url`. */
async function configured(url: string, source: string): Promise<string> {
  const place = state();
  await putKey("agent", join(place, "pki"));
  const file = join(place, "tagferry.yaml");
  writeFileSync(join(place, "password"), user.password);
  writeFileSync(
    file,
    `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(place)} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
  line:
    { type: opcua, url: "${url}", username: ${user.name}, password: ${JSON.stringify(`\${file:${join(place, "password")}}`)}, ${source}
      tags: [{ input: a, path: Line/Temp }] }
`,
  );
  return file;
}

test.each(["browse", "browse --source", "browse --endpoints", "check --online", "test --once", "init"])(
  "%s gives a server that nobody has trusted no password",
  async (name) => {
    await using server = await rogue();
    const { url } = server.server;
    const file = await configured(url, "security: { mode: none },");
    const passwordFile = join(file, "../password");
    const ended = await command(...argumentsOf(name, url, file, passwordFile));
    expect(server.secrets).toEqual([]);
    if (name === "browse --endpoints") return;
    // `init` chooses an endpoint with security, which fails first because the certificate is not trusted.
    if (name === "init") expect(ended.stderr).toContain("is not trusted");
    if (name === "init") return;
    expect(ended.stdout + ended.stderr).toMatch(
      /the password has to be encrypted with the server's certificate; the server's certificate [0-9a-f]{40} .* is not trusted/,
    );
  },
);

function argumentsOf(name: string, url: string, file: string, passwordFile: string): [string[], CommandOptions?] {
  const credentials = ["--username", user.name, "--password-file", passwordFile];
  if (name === "browse") return [["browse", url, ...credentials]];
  if (name === "browse --source") return [["browse", "-c", file, "--source", "line"]];
  if (name === "browse --endpoints") return [["browse", url, "--endpoints", ...credentials]];
  if (name === "check --online") return [["check", "--online", "-c", file]];
  if (name === "test --once") return [["test", "--once", "-c", file]];
  // The answer "n": the user has not compared the certificate.
  const answers = ["gw1", "", "", "", "secret", url, "n", user.name, user.password, "y", ""];
  return [["init", "-c", join(state(), "new.yaml")], { answers, variables: { STATE_DIRECTORY: join(file, "..") } }];
}

test("browse sends the password, encrypted, to a server whose certificate was compared", async () => {
  await using server = await rogue();
  const file = await configured(server.server.url, "");
  const browse = ["browse", server.server.url, "--username", user.name, "--password-file", join(file, "../password")];
  const thumbprint = /--trust ([0-9a-f]{40})/.exec((await command(browse)).stderr)?.[1] ?? "";
  expect(await command([...browse, "--trust", thumbprint])).toMatchObject({ status: 0 });
  expect(server.secrets).toEqual([{ kind: "password", encryption: expect.stringContaining("rsa-oaep") }]);
});

test("a source without security logs in once its server is trusted, or where the configuration accepts the risk", async () => {
  await using server = await rogue();
  const { url } = server.server;
  const options = { url, ...inClear, ...login };
  const stateDir = state();
  await expect(openOpcuaSource({ stateDir, options, tags })).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringContaining("tagferry trust accept"),
  });
  expect(server.secrets).toEqual([]);
  {
    await using source = await openTrusting({ stateDir, options, tags });
    expect(source.details?.().warning).not.toContain("password");
  }
  {
    const risky = { stateDir: state(), options: { ...options, allowInsecurePassword: true }, tags };
    await using source = await openOpcuaSource(risky);
    expect(source.details?.().warning).toContain("with a certificate that is not verified (allowInsecurePassword)");
  }
  expect(server.secrets.map(({ kind }) => kind)).toEqual(["password", "password"]);
});

test("a user's certificate does not sign for an untrusted server", async () => {
  await using server = await rogue();
  const stateDir = state();
  await putKey("agent", join(stateDir, "pki"));
  // Any connection creates the agent's own certificate, which serves as the user's certificate here.
  await (await openOpcuaSource({ stateDir, options: { url: server.server.url, ...inClear }, tags }))[
    Symbol.asyncDispose
  ]();
  const own = join(stateDir, "pki/own");
  const userCertificate = {
    certFile: join(own, "certs/client_certificate.pem"),
    keyFile: join(own, "private/private_key.pem"),
  };
  const setup = { stateDir, options: { url: server.server.url, ...inClear, userCertificate }, tags };
  await expect(openOpcuaSource(setup)).rejects.toMatchObject({ message: expect.stringContaining("is not trusted") });
  expect(server.secrets).toEqual([]);
  await (await openTrusting(setup))[Symbol.asyncDispose]();
  expect(server.secrets).toMatchObject([{ kind: "signature" }]);
});

/** A state folder that trusts a server, and the certificate of that server. */
async function trusting() {
  const stateDir = state();
  await using server = await opcuaServer({ folder: folder.file("trusted"), secure: true });
  const options = { url: server.url, ...inClear, ...login };
  await (await openTrusting({ stateDir, options, tags }))[Symbol.asyncDispose]();
  return {
    stateDir,
    certificate: new X509Certificate(readFileSync(folder.file("trusted/own/certs/certificate.pem"))).raw,
  };
}

test.each([
  ["another certificate", undefined],
  ["no certificate", new Uint8Array(0)],
])(
  "an impostor that shows the trusted server's certificate, then %s with the session, gets no password",
  async (_, then) => {
    const { stateDir, certificate } = await trusting();
    await using server = await rogue();
    Object.assign(server.control, { listed: certificate, withSession: then });
    const setup = { stateDir, options: { url: server.server.url, ...inClear, ...login }, tags };
    await expect(openOpcuaSource(setup)).rejects.toMatchObject({ code: "SOURCE_REFUSED" });
    expect(server.secrets).toEqual([]);
  },
);

test("a password is encrypted although the chosen endpoint lists a clear-text login", async () => {
  const { stateDir, certificate } = await trusting();
  await using server = await rogue();
  Object.assign(server.control, { listed: certificate, withSession: certificate, weakensFrom: 3 });
  const setup = { stateDir, options: { url: server.server.url, ...inClear, ...login }, tags };
  await (await openOpcuaSource(setup).catch(() => undefined))?.[Symbol.asyncDispose]();
  expect(server.secrets).toEqual([{ kind: "password", encryption: expect.stringContaining("rsa-oaep") }]);
});
