// Every packet of the Modbus suite: there is nothing in it that could write.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { crc16 } from "../../src/source/modbus/bus-codec.ts";
import { clientTraffic } from "../support/packet-capture.ts";
import { runSuite } from "../support/suite-run.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const reading = new Set([1, 2, 3, 4, 17, 43]);
const capture = join(import.meta.dirname, "../support/packet-capture.sh");
const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];

/** The function of every request in what a client sent, whatever the frames; throws where a byte belongs to none. */
function functionsIn(bytes: Buffer): readonly number[] {
  const functions: number[] = [];
  for (let at = 0; at < bytes.length; ) {
    const rest = bytes.subarray(at);
    const mbap = rest.length >= 8 && rest.readUInt16BE(2) === 0 ? 6 + rest.readUInt16BE(4) : 0;
    const ascii = rest[0] === 0x3a ? rest.indexOf("\r\n") + 2 : 0;
    // Functions 17 and 43/14 have frames of 4 and 7 bytes, those that read have 8.
    const rtu = [8, 4, 7].find((size) => rest.length >= size && crc16(rest.subarray(0, size)) === 0) ?? 0;
    const frame = ascii >= 3 ? Buffer.from(rest.toString("latin1", 1, ascii - 2), "hex") : rest;
    const size = ascii || rtu || mbap;
    const code = ascii || rtu ? frame[1] : frame[7];
    if (size === 0 || size > rest.length || code === undefined) throw new Error(`no request: ${rest.toString("hex")}`);
    functions.push(code);
    at += size;
  }
  return functions;
}

test("the whole suite, packet by packet and byte by byte on the lines, asks for functions 1 to 4, 17 and 43 only", async () => {
  using folder = temporaryFolder();
  const sent: Buffer[] = [];
  for (const peers of [false, true]) {
    const file = folder.file(`${peers}.pcap`);
    await runSuite({
      files: peers
        ? ["test/integration/modbus-pymodbus", "test/integration/modbus-libmodbus"]
        : ["test/integration/modbus-", "test/unit/source/modbus"],
      peers,
      within: ["unshare", "--net", ...asRoot, capture, file],
      variables: { TAGFERRY_LINE_LOG: folder.path },
    });
    for (const { pieces } of await clientTraffic(file)) sent.push(...pieces.map((piece) => Buffer.from(piece)));
  }
  const lines = (await readdir(folder.path)).filter((name) => name.endsWith(".line"));
  for (const name of lines) sent.push(await readFile(folder.file(name)));

  const functions = sent.flatMap(functionsIn);

  expect(lines.length).toBeGreaterThanOrEqual(3);
  expect(functions.length).toBeGreaterThan(500);
  expect([...new Set(functions)].filter((code) => !reading.has(code))).toEqual([]);
  for (const code of [1, 2, 3, 4]) expect(functions).toContain(code);
}, 300_000);
