// How the OPC UA source logs in: user certificates, deprecated security policies, host names that only the server can
// resolve.
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
const stateDir = folder.file("state");
const insecure = { security: { mode: "none" } };
const tags = [{ node: `nsu=${lineNamespace};s=Temp` }];
const own = join(stateDir, "pki/own");
/** The agent's own certificate serves as the user's certificate. */
const userCertificate = {
  certFile: join(own, "certs/client_certificate.pem"),
  keyFile: join(own, "private/private_key.pem"),
};
afterAll(() => folder[Symbol.dispose]());

test("a user's certificate is refused until the server trusts it, and logs in then", async () => {
  const users = folder.file("users");
  await using server = await opcuaServer({ folder: folder.file("server"), secure: true, anonymous: false, users });
  await expect(openOpcuaSource({ stateDir, options: { url: server.url, ...insecure }, tags })).rejects.toMatchObject({
    message: expect.stringContaining("set username and password, or userCertificate"),
  });
  for (const security of [insecure, {}]) {
    const setup = { stateDir, options: { url: server.url, userCertificate, ...security }, tags };
    if (security === insecure) {
      await expect(openTrusting(setup)).rejects.toMatchObject({
        code: "SOURCE_REFUSED",
        message: expect.stringMatching(/^logging in at .*: the server/),
      });
      await server.trustUser(userCertificate.certFile);
    }
    await using line = collect(await openTrusting(setup));
    await line.reading(({ quality }) => quality === "good");
  }
});

test("an unreadable user certificate is reported with its file and the reason", async () => {
  const open = (changed: object) =>
    openOpcuaSource({
      stateDir,
      options: { url: "opc.tcp://127.0.0.1:1", userCertificate: { ...userCertificate, ...changed } },
      tags,
    });
  const missing = folder.file("missing.pem");
  await expect(open({ certFile: missing })).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: `userCertificate: ${missing}: there is no such file`,
  });
  await expect(open({ keyFile: userCertificate.certFile })).rejects.toMatchObject({
    message: `userCertificate: ${userCertificate.certFile}: not a certificate or key in PEM or DER, or an invalid passphrase`,
  });
  const server = folder.file("server/own/private/private_key.pem");
  await expect(open({ keyFile: server })).rejects.toMatchObject({
    message: `userCertificate: the key in ${server} is not that of ${userCertificate.certFile}`,
  });
});

test.each(["Basic256", "Basic128Rsa15"])(
  "the deprecated policy %s is used only where it is written, with a standing warning",
  async (policy) => {
    await using old = await opcuaServer({ folder: folder.file("server"), secure: "deprecated" });
    await expect(openTrusting({ stateDir, options: { url: old.url }, tags })).rejects.toMatchObject({
      code: "SOURCE_REFUSED",
      message: expect.stringMatching(/does not offer an endpoint with security.*a deprecated policy.*only where/),
    });
    const runtime = testRuntime();
    const options = { url: old.url, security: { mode: "signAndEncrypt", policy } };
    await using line = collect(await openTrusting({ stateDir, options, tags, runtime }));
    await line.reading(({ quality }) => quality === "good");
    const warning = `the security policy ${policy} is deprecated: it can be broken`;
    expect(line.source.details?.()).toMatchObject({
      security: `signAndEncrypt, ${policy}`,
      warning: expect.stringContaining(warning),
    });
    expect(runtime.lines.filter(({ level }) => level === "warn").map(({ message }) => message)).toContain(
      "insecure connection",
    );
  },
);

test("the configured address is kept whatever the server calls itself, unless the configuration uses the server's", async () => {
  await using server = await opcuaServer({ folder: folder.file("server"), hostname: "localhost" });
  await using network = await tcpProxy(server.port);
  const url = `opc.tcp://127.0.0.1:${network.port}`;
  for (const [endpointHost, proxied] of [
    ["keep", 1],
    ["server", 0],
  ] as const) {
    await using line = collect(await openOpcuaSource({ stateDir, options: { url, endpointHost, ...insecure }, tags }));
    await line.reading(({ quality }) => quality === "good");
    await eventually(() => network.connections === proxied);
    expect(line.source.details?.().endpoint).toBe(`opc.tcp://localhost:${server.port}`);
  }
});
