import { expect, test } from "vitest";
import { asciiCodec, rtuCodec } from "../../../../src/source/modbus/framing/bus-codec.ts";
import { foreignBytes } from "../../../../src/source/modbus/framing/framing.ts";
import { mbapFrame } from "../../../support/modbus-adversary.ts";

const request = { unit: 3, table: "hr", start: 0, count: 2 } as const;
const data = Uint8Array.of(3, 4, 0, 1, 0, 2);
const text = (line: string) => new TextEncoder().encode(line);

test.each([
  ["RTU", rtuCodec.encode({ unit: 3, pdu: data }), "RTU frames", "rtu+tcp://10.0.0.5:4001"],
  ["an exception in RTU", rtuCodec.encode({ unit: 3, pdu: Uint8Array.of(0x83, 2) }), "RTU frames", "rtu+tcp://"],
  ["the beginning of RTU", rtuCodec.encode({ unit: 3, pdu: data }).slice(0, 5), "what looks like RTU", "rtu+tcp://"],
  ["ASCII", asciiCodec.encode({ unit: 3, pdu: data }), "ASCII frames", "ascii+tcp://10.0.0.5:4001"],
  ["a web server", text("HTTP/1.1 400 Bad Request\r\n\r\n"), "(HTTP/1.1 400 Bad Request)", "tcp://10.0.0.5:502"],
  ["an alert of TLS", Uint8Array.of(0x15, 3, 1, 0, 2, 2, 70), "TLS", "tcp://10.0.0.5:502"],
  ["an alert of SSL 3", Uint8Array.of(0x15, 3, 0, 0, 2, 2, 40), "TLS", "tcp://10.0.0.5:502"],
  ["another service", text("SSH-2.0-OpenSSH_9.2\r\n"), "text (SSH-2.0-OpenSSH_9.2)", "tcp://10.0.0.5:502"],
])("%s where Modbus TCP was expected is named, with the address to use", (_name, bytes, what, url) => {
  const found = foreignBytes(bytes, { request, expected: "mbap", peer: "10.0.0.5:4001" });

  expect(found?.what).toContain(what);
  expect(found?.hint).toContain(url);
});

test("Modbus TCP in place of RTU is recognised", () => {
  const found = foreignBytes(mbapFrame(7, 3, data), { request, expected: "rtu", peer: "[::1]:502" });

  expect(found).toEqual({ what: "Modbus TCP frames", hint: "write url: tcp://[::1]:502" });
});

test("expected frames, frames with a wrong checksum, and noise are not recognised as another protocol", () => {
  const rtu = rtuCodec.encode({ unit: 3, pdu: data });
  const damaged = rtu.map((byte, i) => (i === 5 ? byte ^ 1 : byte));
  const about = (bytes: Uint8Array, expected: "mbap" | "rtu") =>
    foreignBytes(bytes, { request, expected, peer: "10.0.0.5:502" });

  expect(about(rtu, "rtu")).toBeUndefined();
  expect(about(mbapFrame(7, 3, data), "mbap")).toBeUndefined();
  expect(about(damaged, "mbap")).toBeUndefined();
  expect(about(Uint8Array.of(3, 3, 9, 1), "mbap")).toBeUndefined();
  expect(about(Uint8Array.of(0xff, 0x80, 1, 2, 3, 4), "mbap")).toBeUndefined();
  expect(about(new Uint8Array(0), "mbap")).toBeUndefined();
});
