// A Modbus TCP device with a model of its registers. It answers functions 1 to 4 from it, answers 17 and 43/14 if it
// has an identity, and misbehaves as a test demands.
import type { Server, Socket } from "node:net";
import { createServer } from "node:net";

export type DeviceTable = "co" | "di" | "hr" | "ir";

export interface DeviceRequest {
  readonly unit: number;
  readonly function: number;
  readonly start: number;
  readonly count: number;
}

/** One unit of the device. Registers and bits that were never set read as 0. */
export interface DeviceUnit {
  /** Sets registers of `hr` and `ir` as 16-bit words, bits of `co` and `di` as 0 and 1. */
  set(table: DeviceTable, start: number, values: readonly number[]): void;
  /** Answers any request that touches these addresses with this exception. */
  refuse(table: DeviceTable, from: number, to: number, code: number): void;
  /** Answers requests for more than this with exception 3. */
  maxCount: number;
  /** Never answers requests for more than this. */
  silentAbove: number;
  /** Never answers requests that touch these addresses. */
  ignore(table: DeviceTable, from: number, to: number): void;
  /** Closes the connection where it would not answer. */
  closesInstead: boolean;
  /** Answers everything with this exception; undefined: normal answers. */
  exception: number | undefined;
  /** Accepts requests and never answers. */
  silent: boolean;
  /** The objects of function 43/14 by number, also used for function 17. Empty: it does not support these functions. */
  identity: Readonly<Record<number, string>>;
  serverId: Uint8Array;
  /** The maximum number of objects in an answer to function 43. */
  objectsAtOnce: number;
  /** Closes the connection on any function other than 1 to 4. */
  endsOnUnknown: boolean;
}

export interface ModbusDevice extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Every request so far, of any function, in the order of arrival. */
  readonly requests: readonly DeviceRequest[];
  /** The largest number of requests that were waiting for an answer at a time. */
  readonly mostInFlight: number;
  /** The number of connections open now. */
  readonly connections: number;
  /** The number of connections accepted so far. */
  readonly accepted: number;
  /** Starts or stops accepting new connections. */
  listen(yes: boolean): Promise<void>;
  /** The unit with this number. The first call creates it; units that do not exist never answer. */
  unit(number: number): DeviceUnit;
  /** Closes all connections, with a reset if `reset` is true. Continues to listen. */
  disconnect(reset?: boolean): void;
  /** Milliseconds between a request and its answer. */
  latencyMs: number;
  /** The unit in its answers; undefined: that of the request. */
  echoUnit: number | undefined;
  /** What becomes of a connection while another one is open: closed, the other is closed, or never answered. */
  single: "refuses" | "evicts" | "ignores" | undefined;
  /** Called after an answer was sent. */
  answered: () => void;
}

const tables: Readonly<Record<number, DeviceTable>> = { 1: "co", 2: "di", 3: "hr", 4: "ir" };

class Unit implements DeviceUnit {
  maxCount = Number.POSITIVE_INFINITY;
  silentAbove = Number.POSITIVE_INFINITY;
  closesInstead = false;
  exception: number | undefined;
  silent = false;
  identity: Readonly<Record<number, string>> = {};
  serverId = new Uint8Array(0);
  objectsAtOnce = Number.POSITIVE_INFINITY;
  endsOnUnknown = false;
  readonly #values: Record<DeviceTable, Map<number, number>> = {
    co: new Map(),
    di: new Map(),
    hr: new Map(),
    ir: new Map(),
  };
  readonly #refused: { table: DeviceTable; from: number; to: number; code: number | undefined }[] = [];

  set(table: DeviceTable, start: number, values: readonly number[]): void {
    values.forEach((value, i) => this.#values[table].set(start + i, value));
  }

  refuse(table: DeviceTable, from: number, to: number, code: number): void {
    this.#refused.push({ table, from, to, code });
  }

  ignore(table: DeviceTable, from: number, to: number): void {
    this.#refused.push({ table, from, to, code: undefined });
  }

  /** The PDU of the answer; undefined: no answer. */
  answer(code: number, start: number, count: number): Buffer | undefined {
    if (this.silent || count > this.silentAbove) return undefined;
    const exception = (number: number) => Buffer.from([code | 0x80, number]);
    const table = tables[code];
    if (this.exception !== undefined) return exception(this.exception);
    if (code === 17 && this.serverId.length > 0) return Buffer.from([17, this.serverId.length, ...this.serverId]);
    if (table === undefined) return exception(1);
    const bits = table === "co" || table === "di";
    if (count < 1 || count > (bits ? 2_000 : 125) || count > this.maxCount) return exception(3);
    if (start + count > 65_536) return exception(2);
    const refused = this.#refused.find((r) => r.table === table && start <= r.to && start + count > r.from);
    if (refused) return refused.code === undefined ? undefined : exception(refused.code);
    const value = (i: number) => this.#values[table].get(start + i) ?? 0;
    const data = Buffer.alloc(bits ? Math.ceil(count / 8) : count * 2);
    for (let i = 0; i < count; i++) {
      if (bits) data[i >> 3]! |= (value(i) & 1) << (i & 7);
      else data.writeUInt16BE(value(i) & 0xff_ff, i * 2);
    }
    return Buffer.concat([Buffer.from([code, data.length]), data]);
  }
}

/** The answer to function 43/14: objects from number `from` on, as many as are sent at once. */
function identification(category: number, from: number, { identity, objectsAtOnce }: Unit): Buffer {
  const all = Object.entries(identity).filter(([number]) => Number(number) >= from);
  const now = all.slice(0, objectsAtOnce).map(([number, text]) => {
    const bytes = Buffer.from(text);
    return Buffer.from([Number(number), bytes.length, ...bytes]);
  });
  const next = all[now.length]?.[0];
  const more = next === undefined ? [0, 0] : [0xff, Number(next)];
  return Buffer.concat([Buffer.from([43, 14, category, 0x82, ...more, now.length]), ...now]);
}

/** Listens on a free port of 127.0.0.1, or on `port`. */
export async function modbusDevice(port = 0): Promise<ModbusDevice> {
  const units = new Map<number, Unit>();
  const requests: DeviceRequest[] = [];
  const sockets = new Set<Socket>();
  let inFlight = 0;
  let mostInFlight = 0;
  let accepted = 0;
  const server = createServer((socket) => {
    accepted++;
    socket.on("error", () => {});
    if (sockets.size > 0 && device.single === "refuses") {
      socket.resetAndDestroy();
      return;
    }
    if (device.single === "evicts") for (const other of sockets) other.destroy();
    const isIgnored = sockets.size > 0 && device.single === "ignores";
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => sockets.delete(socket));
    if (isIgnored) {
      socket.resume();
      return;
    }
    let received = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 6 && received.length >= 6 + received.readUInt16BE(4)) {
        const frame = received.subarray(0, 6 + received.readUInt16BE(4));
        received = received.subarray(frame.length);
        answer(socket, frame);
      }
    });
  });

  function answer(socket: Socket, frame: Buffer): void {
    const unit = frame.readUInt8(6);
    const code = frame.readUInt8(7);
    const [start, count] = frame.length >= 12 ? [frame.readUInt16BE(8), frame.readUInt16BE(10)] : [0, 0];
    requests.push({ unit, function: code, start, count });
    const model = units.get(unit);
    if (model?.endsOnUnknown && tables[code] === undefined) {
      socket.destroy();
      return;
    }
    const identifies = code === 43 && model !== undefined && Object.keys(model.identity).length > 0;
    const pdu = identifies ? identification(frame[9]!, frame[10]!, model) : model?.answer(code, start, count);
    if (!pdu && model?.closesInstead) socket.destroy();
    if (!pdu) return;
    const header = Buffer.from([frame[0]!, frame[1]!, 0, 0, 0, pdu.length + 1, device.echoUnit ?? unit]);
    mostInFlight = Math.max(mostInFlight, ++inFlight);
    const send = () => {
      inFlight--;
      if (socket.writable) socket.write(Buffer.concat([header, pdu]));
      device.answered();
    };
    if (device.latencyMs > 0) setTimeout(send, device.latencyMs);
    else send();
  }

  const device: ModbusDevice = {
    port: await listen(server, port),
    get url() {
      return `tcp://127.0.0.1:${this.port}`;
    },
    requests,
    get mostInFlight() {
      return mostInFlight;
    },
    get connections() {
      return sockets.size;
    },
    get accepted() {
      return accepted;
    },
    async listen(yes) {
      if (yes) await listen(server, this.port);
      else await new Promise((resolve) => server.close(resolve));
    },
    latencyMs: 0,
    echoUnit: undefined,
    single: undefined,
    answered: () => {},
    unit(number) {
      const unit = units.get(number) ?? new Unit();
      units.set(number, unit);
      return unit;
    },
    disconnect(reset = false) {
      for (const socket of sockets) {
        if (reset) socket.resetAndDestroy();
        else socket.destroy();
      }
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
  return device;
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") reject(new Error("no port"));
      else resolve(address.port);
    });
  });
}
