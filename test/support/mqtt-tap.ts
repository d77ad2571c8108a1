// A proxy between a client and a broker that checks whether each PUBLISH is acknowledged, and in order.
// It can also withhold the acknowledgements: to the broker, the client then accepts messages and never acknowledges
// them.
import type { AddressInfo, Socket } from "node:net";
import { connect, createServer } from "node:net";

export interface MqttTap extends AsyncDisposable {
  /** The port for the client. */
  readonly port: number;
  /** The number of connections so far. */
  readonly connections: number;
  /** The number of acknowledged QoS 1 messages. */
  readonly acknowledged: number;
  /** The number of acknowledgements that were not for the oldest unacknowledged message. */
  readonly outOfOrder: number;
  /** While set, PUBACKs of the client do not reach the broker. */
  withholdsAcknowledgements: boolean;
}

/** Forwards every connection to `brokerPort` on this machine. */
export async function openMqttTap(brokerPort: number): Promise<MqttTap> {
  const sockets = new Set<Socket>();
  const counts = { connections: 0, acknowledged: 0, outOfOrder: 0 };
  let withholds = false;
  const server = createServer((client) => {
    counts.connections++;
    const broker = connect(brokerPort, "127.0.0.1").setNoDelay(true);
    client.setNoDelay(true);
    const waiting: number[] = [];
    let oldest = 0;
    const fromBroker = packets((type, body) => {
      if (type >> 4 === 3 && ((type >> 1) & 3) === 1) waiting.push(body.readUInt16BE(2 + body.readUInt16BE(0)));
      return true;
    });
    const fromClient = packets((type, body) => {
      if (type >> 4 !== 4) return true;
      if (withholds) return false;
      counts.acknowledged++;
      if (waiting[oldest++] !== body.readUInt16BE(0)) counts.outOfOrder++;
      if (oldest > 65_536) {
        waiting.splice(0, oldest);
        oldest = 0;
      }
      return true;
    });
    for (const [from, to, watch] of [
      [broker, client, fromBroker],
      [client, broker, fromClient],
    ] as const) {
      sockets.add(from);
      from.on("data", (chunk) => {
        if (!to.write(watch(chunk))) from.pause();
      });
      to.on("drain", () => from.resume());
      from.on("error", () => {});
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // bound to a TCP port
  return {
    port,
    get connections() {
      return counts.connections;
    },
    get acknowledged() {
      return counts.acknowledged;
    },
    get outOfOrder() {
      return counts.outOfOrder;
    },
    get withholdsAcknowledgements() {
      return withholds;
    },
    set withholdsAcknowledgements(value: boolean) {
      withholds = value;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Splits a stream into packets. Returns those for which `pass`, called with the first byte and the body, is true. */
function packets(pass: (type: number, body: Buffer) => boolean): (chunk: Buffer) => Buffer {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
    const passed: Buffer[] = [];
    let at = 0;
    for (;;) {
      let length = 0;
      let head = 1;
      for (; head < 5; head++) {
        const byte = rest[at + head];
        if (byte === undefined) break;
        length += (byte & 0x7f) * 128 ** (head - 1);
        if (byte < 0x80) break;
      }
      const end = at + head + 1 + length;
      if (rest[at + head] === undefined || rest.length < end) break;
      if (pass(rest[at] ?? 0, rest.subarray(at + head + 1, end))) passed.push(rest.subarray(at, end));
      at = end;
    }
    rest = Buffer.from(rest.subarray(at));
    return Buffer.concat(passed);
  };
}
