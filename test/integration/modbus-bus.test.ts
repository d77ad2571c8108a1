// Frames without a transaction ID: RTU over TCP and UDP, from scripted devices. Serial lines are tested with pymodbus.
import { createSocket } from "node:dgram";
import type { Socket } from "node:net";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import type { Reading } from "../../src/core/source.ts";
import { modbusDriver } from "../../src/source/modbus/driver.ts";
import { rtuCodec } from "../../src/source/modbus/framing/bus-codec.ts";
import { mbapFrame } from "../support/modbus-adversary.ts";
import { allRead, latest, modbusConfig, openModbusSource, readUntil } from "../support/modbus-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const signal = () => AbortSignal.timeout(20_000);
const word = (value: number) => Uint8Array.of(3, 2, value >> 8, value & 0xff);
/** The first register holds `value`, the others hold 0. */
const registers = (value: number, count: number) =>
  Uint8Array.of(3, 2 * count, 0, value, ...Array<number>(2 * count - 2).fill(0));

/** An RTU gateway on TCP. Calls `answer` with each request and the socket that it arrived on. */
async function rtuGateway(answer: (request: Buffer, socket: Socket) => void) {
  let connections = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      for (let at = 0; at + 8 <= chunk.length; at += 8) answer(chunk.subarray(at, at + 8), socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `rtu+tcp://127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

test("an answer after its timeout is never assigned to another request: the connection is reopened", async () => {
  let held: (() => void) | undefined;
  await using gateway = await rtuGateway((request, socket) => {
    const [unit = 0, code = 0, , start = 0, , count = 0] = request;
    if (code !== 3) {
      socket.write(rtuCodec.encode({ unit, pdu: Uint8Array.of(code | 0x80, 1) }));
      return;
    }
    const reply = () => socket.write(rtuCodec.encode({ unit, pdu: registers(start, count) }));
    if (start === 10 && !held) {
      held = reply;
      return;
    }
    held?.();
    reply();
  });
  await using source = await openModbusSource(
    { url: gateway.url, timeout: "1s", maxGap: 0 },
    [{ at: "hr:10" }, { at: "hr:20" }],
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(source, signal(), (all) => all.filter((r) => r.quality === "good").length >= 6);

  expect(readings[0]).toMatchObject({ tag: 0, quality: "bad", reason: "unit 1 did not answer within 1s" });
  for (const { tag, value, quality } of readings) if (quality === "good") expect(value).toBe([10, 20][tag]);
  expect(gateway.connections).toBe(2);
});

test("a device is not polled sooner than interRequestDelay after its answer, from the first value on", async () => {
  let repliedAt = Number.NEGATIVE_INFINITY;
  await using gateway = await rtuGateway((request, socket) => {
    if (performance.now() - repliedAt < 200) return;
    const [unit = 0, , , , , count = 0] = request;
    socket.write(rtuCodec.encode({ unit, pdu: registers(7, count) }));
    repliedAt = performance.now();
  });
  const options = { url: gateway.url, timeout: "2s", interRequestDelay: "250ms" };
  await using source = await openModbusSource(options, [{ at: "hr:10" }], testRuntime(), signal());

  const readings = await readUntil(source, signal(), (all) => all.length >= 2);

  expect(readings.map(({ value, reason }) => reason ?? value)).toEqual(readings.map(() => 7));
});

test("a late answer that a device server passes to the next connection, also of another source, is recognised", async () => {
  using folder = temporaryFolder();
  const line: Uint8Array[] = [];
  let silent = true;
  await using server = await rtuGateway((request, socket) => {
    const [unit = 0, code = 0, , start = 0, , count = 0] = request;
    const words = Array.from({ length: count }, (_, i) => start + i).flatMap((value) => [0, value]);
    const pdu = code === 3 ? Uint8Array.of(3, 2 * count, ...words) : Uint8Array.of(code | 0x80, 1);
    line.push(rtuCodec.encode({ unit, pdu }));
    // The unit answers its queued requests in order, at most two at a time.
    if (!silent) socket.write(Buffer.concat(line.splice(0, 2)));
  });
  const starts = [2, 8, 14, 20];
  const open = () =>
    openModbusSource(
      { url: server.url, timeout: "300ms", maxGap: 0 },
      starts.map((start) => ({ at: `hr:${start} u64` })),
      testRuntime(),
      signal(),
      folder.path,
    );
  {
    await using first = await open();
    await expect(readUntil(first, signal(), () => false)).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  }
  expect(line.length).toBeGreaterThanOrEqual(3);
  silent = false;
  await using second = await open();
  const good = (all: readonly Reading[]) => all.filter((reading) => reading.quality === "good");
  const readings = await readUntil(second, signal(), (all) => good(all).length >= 12);

  const right = starts.map((start) => [0, 1, 2, 3].reduce((value, i) => value * 65_536 + start + i, 0));
  for (const { tag, value } of good(readings)) expect(value).toBe(right[tag]);
});

test("registers outside the permitted ranges are not read to distinguish late answers either", async () => {
  const codes = new Set<number>();
  let asked = 0;
  await using gateway = await rtuGateway((request, socket) => {
    const [unit = 0, code = 0] = request;
    codes.add(code);
    if (++asked > 1) socket.write(rtuCodec.encode({ unit, pdu: code === 3 ? word(7) : Uint8Array.of(code | 0x80, 1) }));
  });
  await using source = await openModbusSource(
    { url: gateway.url, timeout: "200ms" },
    [{ at: "hr:10", forbid: ["ir:10..11"] }],
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(source, signal(), (all) => all.filter((r) => r.quality === "good").length >= 2);

  expect(readings[0]?.quality).toBe("bad");
  expect([...codes]).toEqual([3]);
});

test("a dead unit behind a gateway without IDs costs a connection, and no value of the others", async () => {
  await using gateway = await rtuGateway((request, socket) => {
    const [unit = 0, , , , , count = 0] = request;
    if (unit !== 2) socket.write(rtuCodec.encode({ unit, pdu: registers(unit, count) }));
  });
  await using source = await openModbusSource(
    { url: gateway.url, timeout: "1s" },
    [1, 2, 3].map((unit) => ({ at: "hr:0", unit })),
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(source, signal(), (all) => all.filter((r) => r.quality === "good").length >= 20);

  expect(latest(readings).map((reading) => reading.value)).toEqual([1, undefined, 3]);
  // One connection for each of the three timeouts, and for one or two probes on a slow machine.
  expect(gateway.connections).toBeGreaterThanOrEqual(4);
  expect(gateway.connections).toBeLessThan(8);
});

test("over UDP a lost datagram is requested again, and invalid frames and unrelated answers are ignored", async () => {
  const device = createSocket("udp4");
  let requests = 0;
  device.on("message", (frame, from) => {
    requests++;
    if (requests === 1) return;
    const send = (bytes: Uint8Array) => device.send(bytes, from.port, from.address);
    send(Uint8Array.of(1, 2, 3));
    send(new TextEncoder().encode("HTTP/1.1 400 Bad Request"));
    send(mbapFrame(frame.readUInt16BE(0) ^ 1, 1, word(666)));
    send(mbapFrame(frame.readUInt16BE(0), 1, word(7)));
  });
  await new Promise<void>((resolve) => device.bind(0, "127.0.0.1", resolve));
  await using source = await openModbusSource(
    { url: `udp://127.0.0.1:${device.address().port}`, timeout: "500ms" },
    [{ at: "hr:0" }],
    testRuntime(),
    signal(),
  );

  const readings = await readUntil(source, signal(), allRead(1));

  expect(readings.map((reading) => reading.value)).toEqual([7]);
  await new Promise<void>((resolve) => device.close(resolve));
});

test("a missing serial port is SOURCE_UNREACHABLE with a clear message", async () => {
  const opening = openModbusSource({ url: "rtu:///dev/tagferry-none" }, [{ at: "hr:0" }], testRuntime(), signal());
  await expect(opening).rejects.toMatchObject({
    code: "SOURCE_UNREACHABLE",
    message: "/dev/tagferry-none: there is no such serial port",
  });
});

test("unit 0 on a bus is refused: it addresses every unit at once", async () => {
  const opening = openModbusSource({ url: "rtu:///dev/ttyUSB0" }, [{ at: "hr:0", unit: 0 }], testRuntime(), signal());
  await expect(opening).rejects.toMatchObject({ code: "CONFIG_INVALID" });
});

test("knowledge of a bus outlasts the connection: the next one begins with the other master known", async () => {
  await using gateway = await rtuGateway(([unit = 0, code = 0, , start = 0, , count = 0], socket) => {
    const data = (from: number) =>
      Uint8Array.of(code, count * 2, ...Array.from({ length: count }, () => [0, from]).flat());
    socket.write(rtuCodec.encode({ unit, pdu: data(start) }));
    // This frame answers another client of the gateway.
    socket.write(rtuCodec.encode({ unit: 9, pdu: Uint8Array.of(3, 2, 0, 99) }));
  });
  const config = modbusConfig({ url: gateway.url }, [{ at: "hr:10" }]);
  const warned = async (enough: number) => {
    await using source = await modbusDriver.open(config, testRuntime(), signal());
    await readUntil(source, signal(), (all) => all.length >= enough);
    return source.warnings?.().map(({ message }) => message);
  };
  expect(await warned(4)).toEqual([expect.stringContaining("another master reads on this bus (units 9)")]);
  expect(await warned(1)).toEqual([expect.stringContaining("another master reads on this bus (units 9)")]);
});
