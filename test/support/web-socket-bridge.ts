// Forwards WebSocket connections to a broker on TCP. Everything that the broker sends while the bridge waits becomes
// one message in one frame, of any size: a frame that must not reach `ws`.
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { eventually } from "./eventually.ts";

export interface WebSocketBridge extends AsyncDisposable {
  readonly url: string;
  /** The size of the largest message sent to a client, in bytes. */
  readonly largestMessage: number;
}

/** `url` is that of the broker, `mqtt://…`. */
export async function openWebSocketBridge({ url }: { readonly url: string }): Promise<WebSocketBridge> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let largestMessage = 0;
  const server = createServer();
  server.on("upgrade", (request, socket: Socket) => {
    const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
    socket.write(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        `Sec-WebSocket-Accept: ${createHash("sha1").update(key).digest("base64")}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n`,
    );
    const broker = connect(Number(target.port), target.hostname);
    for (const each of [socket, broker])
      sockets.add(each.on("error", () => {}).on("close", () => sockets.delete(each)));
    let gathered: Buffer[] = [];
    broker.on("data", (chunk) => {
      gathered.push(chunk);
      void sendWhenComplete();
    });
    let last = 0;
    const sendWhenComplete = async () => {
      const turn = ++last;
      // The broker wrote all of it at once, so nothing more follows after a few idle turns of the event loop.
      let idle = 0;
      await eventually(() => turn !== last || ++idle > 5);
      if (turn !== last) return;
      const payload = Buffer.concat(gathered);
      gathered = [];
      largestMessage = Math.max(largestMessage, payload.length);
      const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0, 0, 0, 0]);
      head.writeBigUInt64BE(BigInt(payload.length), 2);
      socket.write(Buffer.concat([head, payload]));
    };
    let pending: Buffer = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      for (;;) {
        const short = (pending[1] ?? 0) & 127;
        const head = short === 126 ? 4 : 2;
        if (pending.length < head) return;
        const length = short === 126 ? pending.readUInt16BE(2) : short;
        if (pending.length < head + 4 + length) return;
        const mask = pending.subarray(head, head + 4);
        const payload = Buffer.from(pending.subarray(head + 4, head + 4 + length));
        for (let i = 0; i < length; i++) payload[i] = (payload[i] ?? 0) ^ (mask[i & 3] ?? 0);
        if (((pending[0] ?? 0) & 15) === 2) broker.write(payload);
        pending = pending.subarray(head + 4 + length);
      }
    });
    broker.on("close", () => socket.destroy());
    socket.on("close", () => broker.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // bound to a TCP port
  return {
    url: `ws://127.0.0.1:${port}`,
    get largestMessage() {
      return largestMessage;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
