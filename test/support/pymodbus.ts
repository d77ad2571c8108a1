// pymodbus as a peer: a third-party Modbus server over every transport.
import { join } from "node:path";
import type { DeviceTable } from "./modbus-device.ts";
import { peerServer } from "./peer-server.ts";
import { pythonWith } from "./python.ts";

export interface PymodbusOptions {
  readonly transport: "tcp" | "udp" | "serial";
  readonly framer: "socket" | "rtu" | "ascii";
  /** By unit and table: words or bits from an address on. Everything else does not exist and gives exception 2. */
  readonly units: Readonly<
    Record<number, { readonly [Table in DeviceTable]?: Readonly<Record<number, readonly number[]>> }>
  >;
  /** Objects of function 43/14 by number; every device has 0 to 2. */
  readonly identity?: Readonly<Record<number, string>>;
}

export interface Pymodbus extends AsyncDisposable {
  /** The port, for TCP and UDP. */
  readonly port: number;
  /** The client's end of a serial line. */
  readonly path: string;
}

/** Resolves when it answers. Rejects when Python or the package is not available. */
export async function pymodbus(options: PymodbusOptions): Promise<Pymodbus> {
  const python = await pythonWith("pymodbus[serial]==3.11.3");
  const script = join(import.meta.dirname, "pymodbus-server.py");
  const server = await peerServer(python, [script, JSON.stringify(options)]);
  // printed by the project's own script
  const { port = 0, path = "" } = JSON.parse(server.ready) as { port?: number; path?: string };
  return { port, path, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}
