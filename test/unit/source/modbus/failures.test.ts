// Every failure of a Modbus source as the user sees it, caused by real sockets and devices.
import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";
import { expect, test } from "vitest";
import { isAgentError } from "../../../../src/core/errors.ts";
import { modbusDriver } from "../../../../src/source/modbus/driver.ts";
import { type FailureRow, failureOf, failureTable } from "../../../support/failure-table.ts";
import { type DeviceUnit, modbusDevice } from "../../../support/modbus-device.ts";
import { openModbusSource } from "../../../support/modbus-source.ts";
import { testRuntime } from "../../../support/runtime.ts";

const { signal } = new AbortController();
/** Where an answer is expected, so that a busy machine does not report it as missing. */
const patient = { timeout: "10s" };
/** Where no answer is expected. */
const brief = { timeout: "100ms" };
/** The server is faster than the first request. */
const late = { pauseAfterConnect: "300ms" };

/** The error of the first reading, or of the connection if there was no reading. */
async function read(options: Readonly<Record<string, unknown>>, tag: object = {}): Promise<unknown> {
  const enough = new AbortController();
  const error = await failureOf(async () => {
    const stop = AbortSignal.any([signal, enough.signal]);
    await using source = await openModbusSource(
      { ...patient, ...options },
      [{ at: "hr:0 u16", unit: 1, ...tag }],
      testRuntime(),
      stop,
    );
    for await (const { readings } of source.deliveries(stop))
      for (const { reason } of readings) if (reason !== undefined) throw new Error(reason);
  });
  enough.abort();
  return error instanceof Error && !isAgentError(error) ? error.message : error;
}

/** Reads from a device whose unit 1 behaves like this. */
async function unit(behave: (unit: DeviceUnit) => void, tag: object = {}, options: object = {}): Promise<unknown> {
  await using device = await modbusDevice();
  behave(device.unit(1));
  return await read({ url: device.url, ...options }, tag);
}

/** Reads from a server that handles each connection with `serve`. */
async function against(serve: (socket: Socket) => void, options: object = {}): Promise<unknown> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    serve(socket);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  try {
    const port = typeof address === "object" && address ? address.port : 0;
    return await read({ url: `tcp://127.0.0.1:${port}`, ...options });
  } finally {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }
}

const replies = (bytes: Buffer | string) => (socket: Socket) => void socket.once("data", () => socket.write(bytes));

const rows: readonly FailureRow[] = [
  ["nothing listens", () => read({ url: "tcp://127.0.0.1:1" })],
  ["a server that closes the connection", () => against((socket) => socket.end(), late)],
  ["a server that resets the connection", () => against((socket) => socket.resetAndDestroy(), late)],
  ["a server that never answers", () => against(() => {}, brief)],
  ["a web server", () => against(replies("HTTP/1.1 400 Bad Request\r\n\r\n"))],
  ["TLS on this port", () => against(replies(Buffer.from([0x15, 3, 1, 0, 2, 2, 0x46])))],
  ["RTU frames on a URL of Modbus TCP", () => against(replies(Buffer.from([1, 3, 2, 0, 42, 0x39, 0x9b])))],
  ["a unit that is silent", () => unit((it) => (it.silent = true), {}, brief)],
  ...[1, 2, 3, 4, 7, 8, 10, 11, 99].map(
    (code): FailureRow => [`exception ${code}`, () => unit((it) => (it.exception = code))],
  ),
  ["no number", () => unit((it) => it.set("hr", 0, [0x7fc0, 0]), { at: "hr:0 f32" })],
  ["digits that are no BCD", () => unit((it) => it.set("hr", 0, [0xffff]), { at: "hr:0 bcd16" })],
  ["a serial port that is not there", () => read({ url: "rtu:///dev/no-such-port" })],
  [
    "a UDP port where nothing listens",
    async () => {
      const socket = createSocket("udp4").bind(0, "127.0.0.1");
      await new Promise((resolve) => socket.once("listening", resolve));
      const { port } = socket.address();
      await new Promise<void>((resolve) => socket.close(() => resolve()));
      return await read({ url: `udp://127.0.0.1:${port}` });
    },
  ],
  [
    "browse of a unit that does not answer",
    async () => {
      await using device = await modbusDevice();
      return await failureOf(async () => {
        for await (const _ of modbusDriver.browse?.(
          { url: `${device.url}?unit=9`, options: { timeout: 100 } },
          testRuntime(),
          signal,
        ) ?? []);
      });
    },
  ],
];

test("the table of failures", { timeout: 30_000 }, async () => {
  await expect(await failureTable(rows)).toMatchFileSnapshot("../../../fixtures/failures/modbus.txt");
});
