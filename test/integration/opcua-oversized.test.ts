// Sizes: the agent closes the connection on an endless message before it takes the memory. It accepts answers that are
// larger than the requests that a server accepts. A value that is too large for the stack costs no other value.
import { connect, createServer } from "node:net";
import { DataType, Variant } from "node-opcua-client";
import { afterAll, expect, test } from "vitest";
import { largestMessageBytes } from "../../src/source/opcua/stack/stack.ts";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

const unlimited = 0xffff_ffff;
const chunkBytes = 65_536;

/** Acknowledges the connection, then answers the first request with an endless sequence of chunks. */
async function endlessServer() {
  const hello: number[] = [];
  let sent = 0;
  const hungUp = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    let opened = false;
    socket.on("error", () => {});
    socket.on("close", () => opened && hungUp.resolve());
    socket.on("data", (data) => {
      if (data.toString("latin1", 0, 3) === "HEL") {
        hello.push(data.readUInt32LE(20));
        const acknowledge = Buffer.alloc(28);
        acknowledge.write("ACKF", "latin1");
        acknowledge.writeUInt32LE(28, 4);
        for (const [at, value] of [[12, chunkBytes] as const, [16, chunkBytes] as const, [20, unlimited] as const])
          acknowledge.writeUInt32LE(value, at);
        acknowledge.writeUInt32LE(unlimited, 24);
        socket.write(acknowledge);
        return;
      }
      if (opened) return;
      opened = true;
      // The length up to the sequence number: message header, channel, policy, no certificates (OPC 10000-6, 6.7.2).
      const secured = 12 + 4 + data.readInt32LE(12) + 8;
      const requestId = data.readUInt32LE(secured + 4);
      let sequence = 0;
      const push = () => {
        // The loop ends when the agent has accepted more than it ever may.
        for (let room = true; room && sent < 4 * largestMessageBytes && !socket.destroyed; ) {
          const chunk = Buffer.alloc(chunkBytes);
          data.copy(chunk, 0, 0, secured);
          chunk.write("C", 3, "latin1");
          chunk.writeUInt32LE(chunkBytes, 4);
          chunk.writeUInt32LE(++sequence, secured);
          chunk.writeUInt32LE(requestId, secured + 4);
          sent += chunkBytes;
          room = socket.write(chunk);
        }
        if (sent >= 4 * largestMessageBytes) socket.end();
      };
      socket.on("drain", push);
      push();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `opc.tcp://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`,
    hello,
    hungUp: hungUp.promise,
    get sent() {
      return sent;
    },
    [Symbol.dispose]: () => void server.close(),
  };
}

test("an endless message is cut off at the agent's own limit, with a reason for the operator", async () => {
  using server = await endlessServer();
  const options = { url: server.url, security: { mode: "none" } };
  const opening = openOpcuaSource({ stateDir: folder.file("state"), options, tags: [{ path: "Line/Temp" }] });
  await expect(opening).rejects.toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: expect.stringContaining("the server sent a message of more than 32 MiB"),
  });
  await server.hungUp;
  expect(new Set(server.hello)).toEqual(new Set([largestMessageBytes]));
  // Doubled, because the network's buffers hold some data as well.
  expect(server.sent).toBeLessThan(2 * largestMessageBytes);
});

/** A server that announces that it accepts requests of 4 KiB in a single chunk. Its answers are as large as usual. */
async function smallRequests(port: number) {
  const chunks: number[] = [];
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    let acknowledged = false;
    for (const [from, to] of [[client, upstream] as const, [upstream, client] as const])
      from.on("error", () => {}).on("close", () => to.destroy());
    client.on("data", (data) => {
      chunks.push(data.readUInt32LE(4));
      upstream.write(data);
    });
    upstream.on("data", (data) => {
      if (!acknowledged && data.toString("latin1", 0, 3) === "ACK") {
        acknowledged = true;
        // ReceiveBufferSize, MaxMessageSize and MaxChunkCount: the limits that the server announces (OPC 10000-6,
        // 7.1.2.4).
        for (const [at, value] of [[12, 8_192] as const, [20, 4_096] as const, [24, 1] as const])
          data.writeUInt32LE(value, at);
      }
      client.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `opc.tcp://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`,
    chunks,
    [Symbol.dispose]: () => void server.close(),
  };
}

test("answers may be larger than the server's limit of requests", async () => {
  // Its list of endpoints alone, each with a certificate, exceeds 4 KiB.
  await using server = await opcuaServer({ folder: folder.file("server"), secure: "deprecated" });
  using network = await smallRequests(server.port);
  await using line = collect(
    await openOpcuaSource({
      stateDir: folder.file("small"),
      options: { url: network.url, security: { mode: "none" } },
      tags: [{ node: `nsu=${lineNamespace};s=Temp` }],
    }),
  );
  await eventually(() => line.values(0).length > 0);
  expect(Math.max(...network.chunks)).toBeLessThanOrEqual(8_192);
});

test("a value that the stack cannot decode costs no other value, and is bad with a reason", async () => {
  await using server = await opcuaServer({ folder: folder.file("server") });
  const value = Array.from({ length: Variant.maxArrayLength + 1 }, () => true);
  server.add("Bitmap", { dataType: DataType.Boolean, arrayType: 1, value });
  const node = (name: string) => ({ node: `nsu=${lineNamespace};s=${name}` });
  await using line = collect(
    await openOpcuaSource({
      stateDir: folder.file("bitmap"),
      options: { url: server.url, security: { mode: "none" } },
      tags: [node("Bitmap"), node("Temp")],
    }),
  );
  await line.reading(({ tag, value: temp }) => tag === 1 && temp === 20);
  const bitmap = await line.reading(({ tag }) => tag === 0);
  expect(bitmap).toMatchObject({ quality: "bad", reason: expect.stringMatching(/cannot be decoded: maxArrayLength/) });
  expect(await line.source.check?.(AbortSignal.timeout(30_000))).toMatchObject({
    refused: [{ tag: 0, message: expect.stringContaining("cannot be decoded") }],
    values: [{ tag: 1, value: 20 }],
  });
});
