// Compares the values that `modbus-serial` returns when used directly with those that the driver's transport returns.
// The library gets no replies because of these differences.
import { createServer, type Socket } from "node:net";
import modbusSerial from "modbus-serial";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/lib/time/clock.ts";
import { streamExchange } from "../../src/source/modbus/connection/exchange.ts";
import { ReadingPort } from "../../src/source/modbus/connection/request-encoder.ts";
import { rtuCodec } from "../../src/source/modbus/framing/bus-codec.ts";
import { BusFraming } from "../../src/source/modbus/framing/bus-framing.ts";
import { MbapFraming } from "../../src/source/modbus/framing/mbap-framing.ts";
import { connectTcp } from "../../src/source/modbus/transport/byte-stream.ts";
import { mbapFrame } from "../support/modbus-adversary.ts";

const signal = () => AbortSignal.timeout(20_000);
/** Longer than a busy machine takes to receive a reply. Each missing reply costs this time. */
const timeoutMs = 400;

/** Returns the registers from `start`, or the error message. */
type Read = (start: number, count: number) => Promise<readonly number[] | string>;
/** The bytes that a device sends for a request. `start` and `count` are the address and quantity in it. */
type Answer = (request: Buffer, start: number, count: number) => Uint8Array | "reset" | undefined;

async function device(requestBytes: number, answer: Answer) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      for (let at = 0; at + requestBytes <= chunk.length; at += requestBytes) {
        const request = chunk.subarray(at, at + requestBytes);
        const place = requestBytes === 12 ? 8 : 2;
        const reply = answer(request, request.readUInt16BE(place), request.readUInt16BE(place + 2));
        if (reply === "reset") socket.resetAndDestroy();
        else if (reply) socket.write(reply);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

type Wire = "mbap" | "rtu";

/** The library, used as its README shows. */
async function bareLibrary(port: number, wire: Wire): Promise<{ read: Read } & AsyncDisposable> {
  const client = new modbusSerial.default();
  if (wire === "mbap") await client.connectTCP("127.0.0.1", { port });
  else await client.connectTelnet("127.0.0.1", { port });
  client.setID(1);
  client.setTimeout(timeoutMs);
  return {
    read: async (start, count) => {
      try {
        return (await client.readHoldingRegisters(start, count)).data;
      } catch (error) {
        return String(Object(error).message);
      }
    },
    async [Symbol.asyncDispose]() {
      client.destroy(() => {});
    },
  };
}

/** The same library behind the driver's transport. */
async function guarded(port: number, wire: Wire): Promise<{ read: Read } & AsyncDisposable> {
  const stream = await connectTcp({ host: "127.0.0.1", port, localAddress: undefined, timeoutMs: 10_000 }, signal());
  const framing =
    wire === "mbap" ? new MbapFraming({ anyUnit: false }) : new BusFraming({ codec: rtuCodec, reopen: false });
  const exchange = streamExchange(stream, framing, systemClock());
  return {
    read: async (start, count) => {
      const result = await exchange.run({ unit: 1, table: "hr", start, count }, timeoutMs, signal());
      if (result.kind !== "data") return result.kind;
      return Array.from({ length: count }, (_, i) => (result.bytes[2 * i]! << 8) | result.bytes[2 * i + 1]!);
    },
    [Symbol.asyncDispose]: () => exchange[Symbol.asyncDispose](),
  };
}

/** Each register holds its own address. */
function honest(start: number, count: number): Uint8Array {
  const words = Array.from({ length: count }, (_, i) => start + i).flatMap((word) => [word >> 8, word & 0xff]);
  return Uint8Array.of(3, 2 * count, ...words);
}

const idOf = (request: Buffer) => request.readUInt16BE(0);

describe.concurrent("replies that the library takes for values", () => {
  test("a reply 256 requests late is accepted by the library for another register, and by the agent for none", async () => {
    const scenario = async (open: typeof bareLibrary) => {
      let late: Buffer | undefined;
      let asked = 0;
      await using server = await device(12, (request, start, count) => {
        // After this many requests the transaction IDs of the library have wrapped around; those of the driver have
        // not.
        if (asked++ === 0) late = Buffer.from(mbapFrame(idOf(request), 1, honest(start, count)));
        else if (start === 20 && late) return late;
        else return mbapFrame(idOf(request), 1, honest(start, count));
        return undefined;
      });
      await using client = await open(server.port, "mbap");
      await client.read(10, 1);
      for (let i = 0; i < 255; i++) expect(await client.read(15, 1)).toEqual([15]);
      return await client.read(20, 1);
    };
    expect(await scenario(bareLibrary)).toEqual([10]);
    expect(await scenario(guarded)).toBe("silence");
  });

  test("a byte count that differs from the request is accepted by the library with fewer registers, and refused by the agent", async () => {
    const scenario = async (open: typeof bareLibrary) => {
      await using server = await device(12, (request) => mbapFrame(idOf(request), 1, Uint8Array.of(3, 2, 0, 7, 0, 8)));
      await using client = await open(server.port, "mbap");
      return await client.read(7, 2);
    };
    expect(await scenario(bareLibrary)).toEqual([7]);
    expect(await scenario(guarded)).toBe("silence");
  });

  test("a frame of another protocol gives a value in the library, and ends the agent's connection", async () => {
    const scenario = async (open: typeof bareLibrary) => {
      await using server = await device(12, (request, start, count) => {
        const frame = mbapFrame(idOf(request), 1, honest(start, count));
        frame[3] = 5;
        return frame;
      });
      await using client = await open(server.port, "mbap");
      return await client.read(7, 1).catch((error: unknown) => Object(error).code);
    };
    expect(await scenario(bareLibrary)).toEqual([7]);
    expect(await scenario(guarded)).toBe("SOURCE_PROTOCOL");
  });

  test("without transaction IDs a late reply is accepted by the library for the next register, and by the agent for none", async () => {
    const scenario = async (open: typeof bareLibrary) => {
      const line: Uint8Array[] = [];
      await using server = await device(8, (_request, start, count) => {
        line.push(rtuCodec.encode({ unit: 1, pdu: honest(start, count) }));
        // Both replies are sent together after the second request.
        return line.length < 2 ? undefined : Buffer.concat(line.splice(0));
      });
      await using client = await open(server.port, "rtu");
      await client.read(10, 1);
      return await client.read(20, 1);
    };
    expect(await scenario(bareLibrary)).toEqual([10]);
    expect(await scenario(guarded)).toEqual([20]);
  });

  test("a connection reset leaves the library's request waiting for its timeout, and fails the agent's request at once", async () => {
    await using server = await device(12, () => "reset");
    await using bare = await bareLibrary(server.port, "mbap");
    expect(await bare.read(7, 1)).toBe("Timed out");
    await using ours = await guarded(server.port, "mbap");
    await expect(ours.read(7, 1)).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  });
});

test("no write request leaves through the agent's port, although the library can write", () => {
  const sent: Uint8Array[] = [];
  const library = new modbusSerial.default(new ReadingPort((pdu) => sent.push(new Uint8Array(pdu))));
  library.open(() => {});
  library.writeFC3(1, 7, 1, () => {});
  expect(sent).toEqual([Uint8Array.of(3, 0, 7, 0, 1)]);
  for (const write of [
    () => library.writeFC5(1, 0, true, () => {}),
    () => library.writeFC6(1, 0, 1, () => {}),
    () => library.writeFC15(1, 0, [true], () => {}),
    () => library.writeFC16(1, 0, [1], () => {}),
  ])
    expect(write).toThrow(RangeError);
  expect(sent).toHaveLength(1);
});
