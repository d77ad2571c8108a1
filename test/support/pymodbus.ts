// pymodbus as a peer: a Modbus server that is not ours, over every transport.
import { join } from "node:path";
import type { DeviceTable } from "./modbus-device.ts";
import { peerServer } from "./peer-server.ts";
import { pythonWith } from "./python.ts";

export interface PymodbusOptions {
  readonly transport: "tcp" | "udp" | "serial";
  readonly framer: "socket" | "rtu" | "ascii";
  /** By unit and table: words or bits from an address on. What is not here does not exist: exception 2. */
  readonly units: Readonly<
    Record<number, { readonly [Table in DeviceTable]?: Readonly<Record<number, readonly number[]>> }>
  >;
  /** Objects of function 43/14 by number; 0 to 2 are what every device has. */
  readonly identity?: Readonly<Record<number, string>>;
}

export interface Pymodbus extends AsyncDisposable {
  /** Of TCP and UDP. */
  readonly port: number;
  /** Of a serial line: the end for us. */
  readonly path: string;
}

/** Resolves when it answers. Rejects when Python or the package cannot be had. */
export async function pymodbus(options: PymodbusOptions): Promise<Pymodbus> {
  const python = await pythonWith("pymodbus[serial]==3.11.3");
  const script = join(import.meta.dirname, "pymodbus-server.py");
  const server = await peerServer(python, [script, JSON.stringify(options)]);
  const { port = 0, path = "" } = JSON.parse(server.ready) as { port?: number; path?: string }; // our own script's words
  return { port, path, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
