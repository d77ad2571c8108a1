// Every failure of an MQTT source as the user sees it, caused by real sockets and brokers.
import { readFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mqttDriver } from "../../../../src/source/mqtt/driver.ts";
import { authority, dayMs } from "../../../support/certificate.ts";
import { type FailureRow, failureOf, failureTable } from "../../../support/failure-table.ts";
import { openMqttBroker } from "../../../support/mqtt-broker.ts";
import { openMqttSource } from "../../../support/mqtt-source.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { politeAnswer, scriptedBroker } from "../../../support/scripted-broker.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const { signal } = new AbortController();
const tags = [{ topic: "a" }];
const tlsFile = (name: string) => join(import.meta.dirname, "../../../fixtures/tls", name);
const identity = (name: string) => ({
  cert: readFileSync(tlsFile(`${name}.pem`)),
  key: readFileSync(tlsFile(`${name}-key.pem`)),
});
const caFile = tlsFile("ca.pem");

function open(options: Readonly<Record<string, unknown>>) {
  return failureOf(() => openMqttSource({ options, tags }, testRuntime(), signal));
}

/** A server that handles each connection with `serve`. */
async function serving(serve: (socket: Socket) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    serve(socket);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function against(serve: (socket: Socket) => void, options: object = {}): Promise<unknown> {
  await using server = await serving(serve);
  return await open({ url: `mqtt://127.0.0.1:${server.port}`, ...options });
}

/** A broker that refuses the connection with this code. */
async function refusing(code: number, version: 4 | 5): Promise<unknown> {
  await using broker = await scriptedBroker(
    (packet, client) => {
      if (packet.cmd === "connect")
        client.send({
          cmd: "connack",
          sessionPresent: false,
          ...(version === 5 ? { reasonCode: code } : { returnCode: code }),
        });
    },
    { version },
  );
  const login = { username: "gw1", password: "rope", clientId: "north-hall" };
  return await open({ url: broker.url, protocolVersion: version, ...login });
}

/** A broker that closes an established connection with this code. */
async function ending(code: number): Promise<unknown> {
  await using broker = await scriptedBroker((packet, client) => {
    politeAnswer(packet, client);
    if (packet.cmd !== "subscribe") return;
    client.send({ cmd: "disconnect", reasonCode: code });
    client.socket.end();
  });
  const options = { url: broker.url, protocolVersion: 5, clientId: "north-hall" };
  return await failureOf(async () => {
    await using source = await openMqttSource({ options, tags }, testRuntime(), signal);
    for await (const _ of source.deliveries(signal));
  });
}

async function withTls(tls: object, options: object): Promise<unknown> {
  await using broker = await openMqttBroker({ tls: { ...identity("broker"), ...tls } });
  return await open({ url: broker.url, ...options });
}

/** A broker with a certificate of a trusted authority. */
async function certified(times: object, { cert, issue } = authority(), names = ["127.0.0.1"]): Promise<unknown> {
  using folder = temporaryFolder();
  const trusted = folder.file("ca.pem");
  await import("node:fs").then(({ writeFileSync }) => writeFileSync(trusted, cert));
  return await withTls(issue({ names, ...times }), { caFile: trusted });
}

const rows: readonly FailureRow[] = [
  ["nothing listens", () => open({ url: "mqtt://127.0.0.1:1" })],
  ["a server that closes the connection", () => against((socket) => socket.end())],
  ["a server that resets the connection", () => against((socket) => socket.resetAndDestroy())],
  ["a server that never answers", () => against(() => {}, { connectTimeout: "100ms", protocolVersion: 5 })],
  [
    "a web server",
    () => against((socket) => socket.once("data", () => socket.write("HTTP/1.1 400 Bad Request\r\n\r\n"))),
  ],
  ...[1, 2, 3, 4, 5].map((code): FailureRow => [`CONNACK of MQTT 3.1.1 with ${code}`, () => refusing(code, 4)]),
  ...[128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 140, 144, 149, 151, 153, 154, 155, 156, 157, 159].map(
    (code): FailureRow => [`CONNACK of MQTT 5 with ${code}`, () => refusing(code, 5)],
  ),
  ...[139, 141, 142, 147, 150, 152, 160].map((code): FailureRow => [`DISCONNECT with ${code}`, () => ending(code)]),
  [
    "all subscriptions refused",
    async () => {
      await using broker = await scriptedBroker((packet, client) => {
        if (packet.cmd === "subscribe")
          client.send({ cmd: "suback", messageId: packet.messageId ?? 0, granted: [135] });
        else politeAnswer(packet, client);
      });
      return await failureOf(async () => {
        await using source = await openMqttSource({ options: { url: broker.url }, tags }, testRuntime(), signal);
        for await (const _ of source.deliveries(signal));
      });
    },
  ],
  [
    "browse, where # may not be read",
    async () => {
      await using broker = await scriptedBroker((packet, client) => {
        if (packet.cmd === "subscribe")
          client.send({ cmd: "suback", messageId: packet.messageId ?? 0, granted: [135] });
        else politeAnswer(packet, client);
      });
      return await failureOf(async () => {
        for await (const _ of mqttDriver.browse?.({ url: broker.url }, testRuntime(), signal) ?? []);
      });
    },
  ],
  ["a certificate of an issuer that is not trusted", () => withTls({}, {})],
  ["a certificate of another name", () => withTls(identity("other-name"), { caFile })],
  ["a certificate that has expired", () => certified({ from: -2 * dayMs, to: -dayMs })],
  ["a certificate that is not valid yet", () => certified({ from: dayMs, to: 2 * dayMs })],
  [
    "a certificate whose issuer is trusted, and not the authority above it",
    () => certified({}, authority("Plant", authority("Root"))),
  ],
  [
    "a broker that requires a certificate of the client",
    () => withTls({ ca: readFileSync(caFile), requestCert: true, rejectUnauthorized: true }, { caFile }),
  ],
  [
    "TLS on a port without TLS",
    async () => {
      await using server = await serving((socket) => socket.once("data", () => socket.write(Buffer.alloc(16, 0x20))));
      return await open({ url: `mqtts://127.0.0.1:${server.port}` });
    },
  ],
  ["caFile that is not there", () => open({ url: "mqtts://127.0.0.1:1", caFile: "/nowhere/ca.pem" })],
  ["passwordFile that is not there", () => open({ url: "mqtt://127.0.0.1:1", passwordFile: "/nowhere/password" })],
  [
    "certFile that is a folder",
    () => open({ url: "mqtts://127.0.0.1:1", certFile: "/", keyFile: tlsFile("client-key.pem") }),
  ],
  [
    "certFile that is no certificate",
    () => withTls({}, { caFile, certFile: tlsFile("README.md"), keyFile: tlsFile("client-key.pem") }),
  ],
  [
    "keyFile that is the key of another certificate",
    () => withTls({}, { caFile, certFile: tlsFile("client.pem"), keyFile: tlsFile("broker-key.pem") }),
  ],
];

test("the table of failures", { timeout: 30_000 }, async () => {
  await expect(await failureTable(rows)).toMatchFileSnapshot("../../../fixtures/failures/mqtt.txt");
});
