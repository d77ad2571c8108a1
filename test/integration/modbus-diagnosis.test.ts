// Diagnostics for slow devices, and for ports at which a different kind of server answers.
import { createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { rtuCodec } from "../../src/source/modbus/framing/bus-codec.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openModbusSource, readUntil } from "../support/modbus-source.ts";
import { testRuntime } from "../support/runtime.ts";

const signal = () => AbortSignal.timeout(25_000);

/** Opens a server that calls `answer` for each chunk it receives. Returns the port. */
async function listening(answer: (socket: Socket, chunk: Buffer) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => answer(socket, chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: address !== null && typeof address === "object" ? address.port : 0,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("a device slower than the timeout is reported with the timeout to set, and its connection is kept", async () => {
  await using device = await modbusDevice();
  device.unit(1).set("hr", 0, [7]);
  device.latencyMs = 160;
  const runtime = testRuntime();
  await using source = await openModbusSource(
    { url: device.url, timeout: "100ms" },
    [{ at: "hr:0", every: 200 }],
    runtime,
    signal(),
  );

  const readings = await readUntil(source, signal(), (all) => all.some(({ reason = "" }) => reason.includes("raise")));

  expect(readings.at(-1)?.reason).toMatch(
    /^unit 1 did not answer within 100ms.*; its answers take \d\.\d s: raise timeout to \ds$/,
  );
  expect(device.accepted).toBe(1);
  expect(runtime.metric("source_modbus_discarded_replies_total")).toBeGreaterThan(0);
});

test("a slow device is recognised over RTU over TCP as well, where its late answer finds no connection", async () => {
  await using device = await listening((socket, chunk) => {
    const answer = rtuCodec.encode({ unit: chunk[0]!, pdu: Uint8Array.of(3, 2, 0, 7) });
    setTimeout(() => socket.writable && socket.write(answer), 160);
  });
  await using source = await openModbusSource(
    { url: `rtu+tcp://127.0.0.1:${device.port}`, timeout: "100ms", retries: 0 },
    [{ at: "hr:0" }],
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(source, signal(), (all) => all.some(({ reason = "" }) => reason.includes("raise")));

  expect(readings.at(-1)?.reason).toMatch(/its answers take \d\.\d s: raise timeout to \ds$/);
});

test.each([
  ["RTU frames", (chunk: Buffer) => rtuCodec.encode({ unit: chunk[6]!, pdu: Uint8Array.of(3, 2, 0, 7) }), "rtu+tcp://"],
  ["the answer of a web server", () => "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "tcp://127.0.0.1:502"],
  ["a TLS record", () => Uint8Array.of(0x15, 3, 1, 0, 2, 2, 70), "tcp://127.0.0.1:502"],
] as const)("%s at a port of tcp:// is named, with the address to use", async (what, answer, url) => {
  await using device = await listening((socket, chunk) => socket.write(answer(chunk)));
  await using source = await openModbusSource(
    { url: `tcp://127.0.0.1:${device.port}` },
    [{ at: "hr:0" }],
    testRuntime(),
    signal(),
  );

  await expect(readUntil(source, signal(), () => false)).rejects.toMatchObject({
    code: "SOURCE_PROTOCOL",
    message: expect.stringContaining(`127.0.0.1:${device.port} sent ${what}`),
    hint: expect.stringContaining(url),
  });
});
