// A TCP proxy in place of the network between the agent and a device. Fails when a test demands it.
import type { Socket } from "node:net";
import { connect, createServer } from "node:net";

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** The number of connections open now. */
  readonly connections: number;
  /** Closes every connection and accepts no new ones. */
  cut(): void;
  /** Bytes that the client sent, and that the device sent, since the start. */
  readonly carried: { readonly up: number; readonly down: number };
  /** The number of bytes from the device that were discarded so far. */
  readonly swallowed: number;
  /** Discards everything that the device sends. The connections stay open. */
  muteDevice(): void;
  /** Delivers what the device sends a second late. */
  slowDevice(): void;
  /** Ends all faults for new connections. */
  restore(): void;
  /** The port to which new connections go. */
  target: number;
}

const slowMs = 1_000;

export async function tcpProxy(target: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let broken = false;
  let muted = false;
  let slow = false;
  let swallowed = 0;
  const carried = { up: 0, down: 0 };
  const server = createServer((client) => {
    if (broken) {
      client.destroy();
      return;
    }
    const device = connect(proxy.target, "127.0.0.1");
    const pair = [client, device] as const;
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      device.destroy();
    };
    for (const socket of pair) socket.on("error", end).on("close", end);
    client.on("data", (data) => {
      carried.up += data.length;
      device.write(data);
    });
    device.on("data", (data) => {
      carried.down += data.length;
      if (muted) swallowed += data.length;
      else if (slow) setTimeout(() => client.write(data), slowMs);
      else client.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const cutAll = () => {
    for (const [client, device] of pairs) {
      client.destroy();
      device.destroy();
    }
  };
  const proxy: TcpProxy = {
    port: typeof address === "object" && address ? address.port : 0,
    get connections() {
      return pairs.size;
    },
    get carried() {
      return carried;
    },
    get swallowed() {
      return swallowed;
    },
    cut() {
      broken = true;
      cutAll();
    },
    muteDevice() {
      muted = true;
    },
    slowDevice() {
      slow = true;
    },
    restore() {
      broken = false;
      muted = false;
      slow = false;
    },
    target,
    async [Symbol.asyncDispose]() {
      cutAll();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
      });
    },
  };
  return proxy;
}
