// A proxy to a device that records when each connection sends something.

import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

export interface PollTap extends AsyncDisposable {
  readonly port: number;
  /** Each request: the number of its connection, and the time of arrival (`performance.now`). */
  readonly requests: readonly { readonly connection: number; readonly at: number }[];
  /** The number of connections open now. */
  readonly open: number;
}

/** Listens on a free port of 127.0.0.1 and forwards to `port`. */
export async function pollTap(port: number): Promise<PollTap> {
  const requests: { connection: number; at: number }[] = [];
  const sockets = new Set<Socket>();
  let accepted = 0;
  let open = 0;
  const server = createServer((client) => {
    const connection = ++accepted;
    open++;
    const device = connect(port, "127.0.0.1");
    sockets.add(client).add(device);
    client.on("data", () => requests.push({ connection, at: performance.now() }));
    client.on("close", () => open--);
    client.pipe(device).pipe(client);
    for (const [one, other] of [
      [client, device],
      [device, client],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the tap has no port");
  return {
    port: address.port,
    requests,
    get open() {
      return open;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
