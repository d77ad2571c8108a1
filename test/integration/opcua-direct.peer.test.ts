// Servers whose endpoints cannot be listed, for example behind a forwarded port: the driver uses the configured values.
import { afterAll, expect, test } from "vitest";
import { beforeRequest } from "../support/opcua-requests.ts";
import { opcuaServer, user } from "../support/opcua-server.ts";
import { collect, openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());
const security = { mode: "none" };
const tags = [{ path: "Line/Temp" }];

/** A server that returns no endpoints. With `silent` it does not answer the request at all. */
const secretive = (folderName: string, { silent = false, secure = false, anonymous = true } = {}) =>
  opcuaServer({
    folder: folder.file(folderName),
    secure,
    anonymous,
    meddle(changed) {
      beforeRequest(changed, "GetEndpoints", () => {
        listing = false;
        return !silent;
      });
      beforeRequest(changed, "FindServers", () => {
        listing = false;
        return !silent;
      });
      beforeRequest(changed, "CreateSession", () => {
        listing = true;
        return true;
      });
      const listed = changed.findMatchingEndpoints.bind(changed);
      changed.findMatchingEndpoints = (url) => (listing ? listed(url) : []);
      Reflect.set(changed, "getServers", () => []);
    },
  });
let listing = false;

test("a server that lists no endpoints is read when the configuration describes one", async () => {
  await using server = await secretive("secretive");
  const { url } = server;
  const stateDir = folder.file("described");
  await expect(openOpcuaSource({ stateDir, options: { url }, tags })).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringContaining("lists no endpoints"),
    hint: expect.stringContaining("security: { mode: none }"),
  });
  await using line = collect(await openOpcuaSource({ stateDir, options: { url, security }, tags }));
  await line.reading(({ quality }) => quality === "good");
  expect(line.source.details?.()).toMatchObject({ endpoint: url, security: "none, None" });
});

test("a server that answers only secure requests is read with the policy and the certificate of the configuration", async () => {
  await using server = await secretive("silent", { silent: true, secure: true, anonymous: false });
  const described = {
    url: server.url,
    security: {
      mode: "signAndEncrypt",
      policy: "Basic256Sha256",
      serverCertificate: folder.file("silent/own/certs/certificate.pem"),
    },
    username: user.name,
    password: user.password,
    timeout: "2s",
  };
  const setup = { stateDir: folder.file("secured"), options: described, tags };
  await expect(openOpcuaSource(setup)).rejects.toMatchObject({
    message: expect.stringContaining("tagferry trust accept"),
  });
  await using line = collect(await openTrusting(setup));
  await line.reading(({ quality }) => quality === "good");
  expect(line.source.details?.()).toMatchObject({ security: "signAndEncrypt, Basic256Sha256" });
});

test("a direct connection sends no password in clear text or to an untrusted server", async () => {
  await using bare = await secretive("bare", { anonymous: false });
  const login = { username: user.name, password: user.password };
  const inClear = { stateDir: folder.file("clear"), options: { url: bare.url, security, ...login }, tags };
  await expect(openOpcuaSource(inClear)).rejects.toMatchObject({ message: expect.stringContaining("in clear text") });
  await using encrypting = await secretive("encrypting", { secure: true, anonymous: false });
  const setup = { ...inClear, options: { ...inClear.options, url: encrypting.url } };
  await expect(openOpcuaSource(setup)).rejects.toMatchObject({ message: expect.stringContaining("is not trusted") });
  await using line = collect(await openTrusting(setup));
  await line.reading(({ quality }) => quality === "good");
});

test("a restart resumes the session of a direct connection, with the login that the server listed", async () => {
  await using server = await secretive("restarted", { secure: true, anonymous: false });
  const options = { url: server.url, security, username: user.name, password: user.password };
  const setup = { stateDir: folder.file("restarts"), options, tags };
  for (const subscription of ["new", "kept", "kept"]) {
    await using line = collect(await openTrusting(setup));
    expect(line.source.details?.()).toMatchObject({ subscription });
    await line.reading(({ quality }) => quality === "good");
    await line[Symbol.asyncDispose]();
    expect([server.sessions, server.subscriptions]).toEqual([1, 1]);
  }
});
