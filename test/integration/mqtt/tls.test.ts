// TLS: which certificates are trusted, which are not, and what the error tells the operator.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mqttDriver } from "../../../src/source/mqtt/driver.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { openMqttSource, pull } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { scriptedBroker } from "../../support/scripted-broker.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { signal } = new AbortController();
const tags = [{ topic: "a" }];
const path = (name: string) => join(import.meta.dirname, "../../fixtures/tls", name);
const caFile = path("ca.pem");
const identity = (name: string) => ({
  cert: readFileSync(path(`${name}.pem`)),
  key: readFileSync(path(`${name}-key.pem`)),
});
const mutual = { ...identity("broker"), ca: readFileSync(caFile), requestCert: true };

test("a broker with a certificate issued by caFile is trusted, with user name and password", async () => {
  const credentials = { username: "gw1", password: "gw1-password" };
  await using broker = await openMqttBroker({ tls: identity("broker"), credentials });
  const options = { url: broker.url, caFile, ...credentials };
  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);

  await broker.publish("a", "1");

  expect(await pull(source, signal).readings(1)).toMatchObject([{ value: 1 }]);
});

test("a broker with an untrusted certificate is refused, with the remedy", async () => {
  await using broker = await openMqttBroker({ tls: identity("broker") });

  await expect(openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal)).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: `${broker.url}: the issuer of its certificate is not trusted`,
    hint: expect.stringMatching(/^set caFile/),
  });
});

test("a certificate of another name is refused unless serverName or verify permits it", async () => {
  await using broker = await openMqttBroker({ tls: identity("other-name") });
  const open = (more: object) =>
    openMqttSource({ options: { url: broker.url, caFile, ...more }, tags }, testRuntime(), signal);

  await expect(open({})).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: `${broker.url}: its certificate is not valid for 127.0.0.1; it is valid for broker.plant.example`,
    hint: "use this name in the URL, or set serverName to it",
  });
  await using _named = await open({ serverName: "broker.plant.example" });
  await using _unnamed = await open({ verify: "ca" });
});

test("without verification any certificate is accepted, and every connection logs a warning", async () => {
  await using broker = await openMqttBroker({ tls: identity("other-name") });
  const runtime = testRuntime();

  await using source = await openMqttSource({ options: { url: broker.url, verify: "none" }, tags }, runtime, signal);

  expect(source.details?.()).toMatchObject({ certificate: "not checked" });
  expect(runtime.lines[0]).toMatchObject({ level: "warn", message: /certificate is not checked/ });
});

test("a broker that requests a certificate gets the one of certFile and keyFile", async () => {
  await using broker = await openMqttBroker({ tls: mutual });
  const options = { url: broker.url, caFile, certFile: path("client.pem"), keyFile: path("client-key.pem") };

  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);

  await broker.publish("a", "1");
  expect(await pull(source, signal).readings(1)).toMatchObject([{ value: 1 }]);
});

test("a broker that requests a certificate and gets none refuses, and the message names the options to set", async () => {
  await using broker = await openMqttBroker({ tls: mutual });

  await expect(
    openMqttSource({ options: { url: broker.url, caFile }, tags }, testRuntime(), signal),
  ).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: `${broker.url}: the broker requires a client certificate`,
    hint: "set certFile and keyFile",
  });
});

test("certificates are read again at each connection", async () => {
  await using broker = await openMqttBroker({ tls: identity("broker") });
  using folder = temporaryFolder();
  const options = { url: broker.url, caFile: folder.file("ca.pem") };
  const open = () => openMqttSource({ options, tags }, testRuntime(), signal);

  await expect(open()).rejects.toMatchObject({ code: "SOURCE_REFUSED", message: /caFile cannot be read/ });
  writeFileSync(options.caFile, readFileSync(path("client.pem")));
  await expect(open()).rejects.toMatchObject({ code: "SOURCE_REFUSED" });
  writeFileSync(options.caFile, readFileSync(caFile));
  await using _source = await open();
});

test("a password in its own file is read again at each connection", async () => {
  const credentials = { username: "gw1", password: "second" };
  await using broker = await openMqttBroker({ credentials });
  using folder = temporaryFolder();
  const options = { url: broker.url, username: "gw1", passwordFile: folder.file("password") };
  const open = () => openMqttSource({ options, tags }, testRuntime(), signal);

  await expect(open()).rejects.toMatchObject({ code: "SOURCE_REFUSED", message: /passwordFile cannot be read/ });
  writeFileSync(options.passwordFile, "first\n");
  await expect(open()).rejects.toMatchObject({ code: "SOURCE_REFUSED" });
  writeFileSync(options.passwordFile, "second\n");
  await using _source = await open();
  expect(() => mqttDriver.schema.parse({ ...options, password: "x" })).toThrow(
    /must not be set together with password/,
  );
});

test("the ALPN name that a broker requires is sent", async () => {
  await using broker = await openMqttBroker({ tls: { ...identity("broker"), ALPNProtocols: ["x-amzn-mqtt-ca"] } });
  const open = (alpn: string) =>
    openMqttSource({ options: { url: broker.url, caFile, alpn: [alpn] }, tags }, testRuntime(), signal);

  await using _source = await open("x-amzn-mqtt-ca");
  await expect(open("another")).rejects.toMatchObject({ name: "AgentError" });
});

test("an invalid key is an error of the source, and the agent continues", async () => {
  await using broker = await openMqttBroker({ tls: mutual });
  const options = { url: broker.url, caFile, certFile: path("client.pem"), keyFile: path("ca.pem") };

  await expect(openMqttSource({ options, tags }, testRuntime(), signal)).rejects.toMatchObject({ name: "AgentError" });
});

test("TLS to a port without TLS is reported", async () => {
  await using broker = await openMqttBroker();
  const url = broker.url.replace("mqtt:", "mqtts:");

  await expect(
    openMqttSource({ options: { url, connectTimeout: "2s" }, tags }, testRuntime(), signal),
  ).rejects.toMatchObject({
    name: "AgentError",
  });
});

test.each([
  ["a server certificate", identity("broker")],
  ["certificates on both sides", mutual],
  ["TLS 1.2 and certificates on both sides", { ...mutual, maxVersion: "TLSv1.2" as const }],
])("mqtt:// to a port that speaks TLS is named, with the URL to write: %s", async (_, tls) => {
  await using broker = await openMqttBroker({ tls });
  const url = broker.url.replace("mqtts:", "mqtt:");

  await expect(openMqttSource({ options: { url }, tags }, testRuntime(), signal)).rejects.toMatchObject({
    code: "SOURCE_PROTOCOL",
    message: `${url}: this port speaks TLS, the URL does not`,
    hint: expect.stringContaining(`write ${broker.url}`),
  });
});

test("the next server is tried when the earlier ones are unreachable or refuse", async () => {
  const gone = await scriptedBroker(() => {});
  await gone[Symbol.asyncDispose]();
  await using refusing = await openMqttBroker({ credentials: { username: "somebody", password: "else" } });
  await using broker = await openMqttBroker();
  const options = { url: gone.url, servers: [refusing.url, broker.url] };

  await using source = await openMqttSource({ options, tags }, testRuntime(), signal);

  expect(source.details?.()).toMatchObject({ broker: broker.url });
});

test("when no server accepts the connection, each one's reason is reported", async () => {
  const gone = await scriptedBroker(() => {});
  await gone[Symbol.asyncDispose]();
  await using refusing = await openMqttBroker({ credentials: { username: "somebody", password: "else" } });
  const options = { url: gone.url, servers: [refusing.url], username: "gw1" };

  await expect(openMqttSource({ options, tags }, testRuntime(), signal)).rejects.toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: `${gone.url}: connection refused: nothing listens on this port; ${refusing.url} refused the connection as user gw1, client north-hall: bad user name or password (4)`,
  });
});
