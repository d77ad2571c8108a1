// A simulated gateway with meters: a Modbus TCP server for functions 3 and 4. The registers of a meter hold counters of
// several types, which grow with each reply.
import { createServer, type Socket } from "node:net";
import type { Runtime } from "../core/runtime.ts";
import { orAbort } from "../lib/flow/abort.ts";
import { waitUntil } from "../lib/flow/repeat.ts";
import { listen } from "../lib/network/listen.ts";
import { type DeviceOptions, inputId, type SimulatedDevice, stopWait } from "./device.ts";

/** Types of numbers in registers. Word order: `abcd` (high word first) or `cdab` (low word first). */
type RegisterType = "u16" | "i16" | "u32" | "i32" | "f32" | "u64" | "f64";

/** A number in registers. Its raw value starts at `start` and grows by `step` with each reply that contains it. */
interface Register {
  readonly name: string;
  readonly table: "hr" | "ir";
  readonly address: number;
  readonly type: RegisterType;
  readonly order: "abcd" | "cdab";
  readonly start: number;
  readonly step: number;
  /** Raw value × scale is the value in `unit`. A power of two avoids rounding. */
  readonly scale: number;
  readonly unit: string;
}

/** Writes a value, big-endian in each word. Returns its length in bytes. */
const write: Readonly<Record<RegisterType, (into: Buffer, value: number) => number>> = {
  u16: (into, value) => into.writeUInt16BE(value),
  i16: (into, value) => into.writeInt16BE(value),
  u32: (into, value) => into.writeUInt32BE(value),
  i32: (into, value) => into.writeInt32BE(value),
  f32: (into, value) => into.writeFloatBE(value),
  u64: (into, value) => into.writeBigUInt64BE(BigInt(value)),
  f64: (into, value) => into.writeDoubleBE(value),
};

export function wordCount(type: RegisterType): number {
  return write[type](Buffer.alloc(8), 0) / 2;
}

export function encodeWords(type: RegisterType, order: Register["order"], value: number): number[] {
  const bytes = Buffer.alloc(8);
  const words = Array.from({ length: write[type](bytes, value) / 2 }, (_, i) => bytes.readUInt16BE(i * 2));
  return order === "abcd" ? words : words.toReversed();
}

const usual = { order: "abcd", scale: 1 } as const;

/** The registers of one meter: all types and orders of a typical one. */
export const meter: readonly Register[] = [
  { ...usual, name: "voltage", table: "hr", address: 0, type: "u16", start: 400, step: 1, scale: 0.5, unit: "V" },
  { ...usual, name: "temperature", table: "hr", address: 1, type: "i16", start: -40, step: 1, scale: 0.5, unit: "°C" },
  { ...usual, name: "energy", table: "hr", address: 2, type: "u32", start: 70_000, step: 1, unit: "Wh" },
  { ...usual, name: "power", table: "hr", address: 4, type: "f32", order: "cdab", start: 1.5, step: 0.25, unit: "kW" },
  { ...usual, name: "balance", table: "hr", address: 6, type: "i32", order: "cdab", start: -9, step: 3, unit: "Wh" },
  { ...usual, name: "pulses", table: "ir", address: 0, type: "u64", start: 5e9, step: 7, unit: "" },
  { ...usual, name: "frequency", table: "ir", address: 4, type: "f64", start: 40, step: 0.125, unit: "Hz" },
];

export class Meter {
  readonly #values = new Map<Register, number>();

  /** `count` registers from `address`, and the numbers completely inside. Undefined: no such register (exception 2). */
  read(table: Register["table"], address: number, count: number): MeterReply | undefined {
    const within = meter.filter((register) => register.table === table);
    const end = Math.max(...within.map((register) => register.address + wordCount(register.type)));
    if (count < 1 || count > 125 || address + count > end) return undefined;
    const words = Array.from({ length: count }, () => 0);
    const values: { register: Register; value: number }[] = [];
    for (const register of within) {
      const offset = register.address - address;
      const size = wordCount(register.type);
      if (offset + size <= 0 || offset >= count) continue;
      const whole = offset >= 0 && offset + size <= count;
      const before = this.#values.get(register);
      const raw = before === undefined ? register.start : before + (whole ? register.step : 0);
      if (whole) {
        this.#values.set(register, raw);
        values.push({ register, value: raw * register.scale });
      }
      for (const [i, word] of encodeWords(register.type, register.order, raw).entries())
        if (offset + i >= 0 && offset + i < count) words[offset + i] = word;
    }
    return { words, values };
  }
}

interface MeterReply {
  readonly words: readonly number[];
  /** In engineering units. */
  readonly values: readonly { readonly register: Register; readonly value: number }[];
}

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
  const host = "127.0.0.1";
  const url = `tcp://${host}:${await orAbort(listen(server, { host, port: 0 }, "simulated meters"), signal)}`;

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
