// libmodbus as a peer: a third-party Modbus server in C. Needs a C compiler and libmodbus' header (libmodbus-dev).
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { peerServer } from "./peer-server.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface Libmodbus extends AsyncDisposable {
  /** The `url` of a source. */
  readonly url: string;
}

/**
 * Unit 1 has these words in both register tables from address 0. Of 16 bits, co:1 and di:0 are set. Resolves when it
 * answers.
 */
export async function libmodbus(transport: "tcp" | "rtu", words: readonly number[]): Promise<Libmodbus> {
  using folder = temporaryFolder();
  const program = folder.file("server");
  const source = join(import.meta.dirname, "libmodbus-server.c");
  await promisify(execFile)("cc", ["-O1", "-I/usr/include/modbus", "-o", program, source, "-lmodbus", "-lpthread"]);
  const server = await peerServer(program, [transport, ...words.map(String)]);
  const place = server.ready;
  return {
    url: transport === "tcp" ? `tcp://127.0.0.1:${place}` : `rtu://${place}?baudRate=19200&parity=none&stopBits=1`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
