// A simulated gateway with meters: a Modbus TCP server for functions 3 and 4, with new values in each reply.
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Runtime } from "../core/runtime.ts";
import { orAbort } from "../lib/flow/abort.ts";
import { waitUntil } from "../lib/flow/repeat.ts";
import { type DeviceOptions, inputId, type SimulatedDevice, stopWait } from "./device.ts";
import { Meter, meter } from "./registers.ts";

/** Exception codes of the Modbus application protocol, section 7. */
const exception = { illegalFunction: 1, illegalAddress: 2, busy: 6, noTarget: 11 } as const;

/** MBAP header and the longest PDU. A longer frame is not a request. */
const longestFrame = 260;

/** A value counts as delivered when its reply was written. After `stop`, the device answers exception 6 (busy). */
export async function openModbusDevice(
  { tags, everyMs, record }: DeviceOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<SimulatedDevice> {
  const meters = new Map(
    Array.from({ length: Math.min(247, Math.ceil(tags / meter.length)) }, (_, i) => [i + 1, new Meter()] as const),
  );
  const input = (unit: number, name: string) => inputId(`demo.meter${unit}.${name}`);
  let stopped = false;
  // Connections served before the stop without a request since.
  const served = new Set<Socket>();

  const answer = (unit: number, pdu: Buffer, socket: Socket): { pdu: Buffer; sent?: () => void } => {
    const code = pdu[0] ?? 0;
    const refuse = (reason: number) => ({ pdu: Buffer.of(code | 0x80, reason) });
    if (stopped) {
      served.delete(socket);
      return refuse(exception.busy);
    }
    const target = meters.get(unit);
    if (!target) return refuse(exception.noTarget);
    if ((code !== 3 && code !== 4) || pdu.length !== 5) return refuse(exception.illegalFunction);
    const reply = target.read(code === 3 ? "hr" : "ir", pdu.readUInt16BE(1), pdu.readUInt16BE(3));
    if (!reply) return refuse(exception.illegalAddress);
    const body = Buffer.alloc(2 + reply.words.length * 2);
    body.writeUInt8(code, 0);
    body.writeUInt8(reply.words.length * 2, 1);
    for (const [i, word] of reply.words.entries()) body.writeUInt16BE(word, 2 + i * 2);
    served.add(socket);
    return {
      pdu: body,
      sent() {
        for (const { register, value } of reply.values) record.add(input(unit, register.name), value);
      },
    };
  };

  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => {
      sockets.delete(socket);
      served.delete(socket);
    });
    socket.on("error", () => socket.destroy());
    let pending = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 8) {
        const length = 6 + pending.readUInt16BE(4);
        // Requires protocol identifier 0, and at least a unit and a function. Otherwise the stream is not Modbus.
        if (pending.readUInt16BE(2) !== 0 || length < 8 || length > longestFrame) {
          socket.destroy();
          return;
        }
        if (pending.length < length) return;
        const header = Buffer.from(pending.subarray(0, 7));
        const { pdu, sent } = answer(header[6] ?? 0, pending.subarray(7, length), socket);
        header.writeUInt16BE(1 + pdu.length, 4);
        pending = pending.subarray(length);
        socket.write(Buffer.concat([header, pdu]), (error) => {
          if (!error) sent?.();
        });
      }
    });
  });
  await orAbort(new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve)), signal);
  const url = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    url,
    inputs: [...meters.keys()].flatMap((unit) => meter.map(({ name }) => input(unit, name))),
    configuration: { templates, source: source(url, everyMs, [...meters.keys()]) },
    async stop(stopSignal) {
      stopped = true;
      await waitUntil(() => served.size === 0, stopWait, runtime.clock, stopSignal);
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

const templates = `  meter:
${meter
  .map(({ name, table, address, type, order, scale, unit }) => {
    const at = `${table}:${address} ${type}${order === "abcd" ? "" : ` ${order}`}`;
    const scaled = scale === 1 ? "" : `, scale: ${scale}`;
    const signal = unit === "" ? "" : `, signal: { engUnit: "${unit}" }`;
    return `    - { input: "demo.{dev}.${name}", at: "${at}"${scaled}${signal} }\n`;
  })
  .join("")}`;

function source(url: string, everyMs: number, units: readonly number[]): string {
  // Everything shares one process, so a long timeout prevents false alarms while it is busy.
  return `  meters:
    type: modbus
    url: ${url}
    every: ${everyMs}ms
    timeout: 10s
    devices:
${units.map((unit) => `      - { unit: ${unit}, template: meter, vars: { dev: meter${unit} } }\n`).join("")}`;
}
