// Captures every packet of the Modbus suite. None of them may contain a write request.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { functionsIn } from "../support/modbus-functions.ts";
import { clientTraffic } from "../support/packet-capture.ts";
import { runSuite } from "../support/suite-run.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const reading = new Set([1, 2, 3, 4, 17, 43]);
const capture = join(import.meta.dirname, "../support/packet-capture.sh");
const asRoot = process.getuid?.() === 0 ? [] : ["--map-root-user"];

test("the whole suite sends only functions 1 to 4, 17 and 43, as captured on network and lines", async () => {
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
      // Fewer adversary replies, so that the capture keeps up on a busy machine.
      variables: { TAGFERRY_LINE_LOG: folder.path, TAGFERRY_ADVERSARY: "2000" },
    });
    for (const { pieces } of await clientTraffic(file)) sent.push(...pieces.map((piece) => Buffer.from(piece)));
  }
  const lines = (await readdir(folder.path)).filter((name) => name.endsWith(".line"));
  for (const name of lines) sent.push(await readFile(folder.file(name)));

  const functions = sent.flatMap(functionsIn);

  expect(lines.length).toBeGreaterThanOrEqual(3);
  expect(functions.length).toBeGreaterThan(500);
  expect([...new Set(functions)].filter((code) => !reading.has(code))).toEqual([]);
  for (const code of reading) expect(functions).toContain(code);
}, 300_000);
