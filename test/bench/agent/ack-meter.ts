// A proxy between the agent and its broker that measures how long each QoS 1 message waits for its acknowledgement.
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface AckMeter extends AsyncDisposable {
  readonly port: number;
  /** Milliseconds from the PUBLISH leaving the broker to its PUBACK, since the last call. */
  takeLatencies(): number[];
}

export async function ackMeter(brokerPort: number): Promise<AckMeter> {
  let latencies: number[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((agent) => {
    const broker = connect(brokerPort, "127.0.0.1");
    const sent = new Float64Array(65_536);
    const fromBroker = new PacketScanner((type, flags, packetId) => {
      if (type === 3 && flags & 0x06) sent[packetId] = performance.now();
    });
    const fromAgent = new PacketScanner((type, _flags, packetId) => {
      if (type === 4 && sent[packetId]) latencies.push(performance.now() - (sent[packetId] ?? 0));
    });
    for (const [from, to, scanner] of [
      [agent, broker, fromAgent],
      [broker, agent, fromBroker],
    ] as const) {
      sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (chunk) => {
        scanner.push(chunk);
        if (!to.write(chunk)) {
          from.pause();
          to.once("drain", () => from.resume());
        }
      });
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("error", () => to.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    takeLatencies() {
      const taken = latencies;
      latencies = [];
      return taken;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** Finds the packets in a stream. Reports type, flags and, of PUBLISH and PUBACK, the packet identifier. */
class PacketScanner {
  readonly #found: (type: number, flags: number, packetId: number) => void;
  #rest: Buffer = Buffer.alloc(0);

  constructor(found: (type: number, flags: number, packetId: number) => void) {
    this.#found = found;
  }

  push(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    for (;;) {
      let length = 0;
      let factor = 1;
      let body = at + 1;
      for (; body < bytes.length; factor *= 128) {
        const byte = bytes[body++] ?? 0;
        length += (byte & 127) * factor;
        if (byte < 128) break;
      }
      if (body >= bytes.length && length > 0) break;
      if (at + 2 > bytes.length || body + length > bytes.length) break;
      const head = bytes[at] ?? 0;
      const type = head >> 4;
      if (type === 3 && head & 0x06)
        this.#found(type, head & 15, bytes.readUInt16BE(body + 2 + bytes.readUInt16BE(body)));
      else if (type === 4) this.#found(type, head & 15, bytes.readUInt16BE(body));
      at = body + length;
    }
    this.#rest = bytes.subarray(at);
  }
}
