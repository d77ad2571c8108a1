// Stands between a client and a broker and watches acknowledgements: whether each PUBLISH is answered, and in its turn.
// It can also keep them to itself: the broker then has a client that takes messages and never says so.
import type { AddressInfo, Socket } from "node:net";
import { connect, createServer } from "node:net";

export interface MqttTap extends AsyncDisposable {
  /** Of the client's side. */
  readonly port: number;
  /** Connections so far. */
  readonly connections: number;
  /** QoS 1 messages that were acknowledged. */
  readonly acknowledged: number;
  /** Acknowledgements of another message than the oldest one that waits for its own. */
  readonly outOfOrder: number;
  /** PUBACKs of the client that come while it is set do not reach the broker. */
  withholdsAcknowledgements: boolean;
}

/** Leads every connection to `brokerPort` on this machine. */
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
  const { port } = server.address() as AddressInfo; // listens on TCP
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

/** Cuts a stream into packets and gives those back that `pass`, called with the first byte and what follows the length. */
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
