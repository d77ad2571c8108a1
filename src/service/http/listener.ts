// The listening socket: opened, closed and opened again on the same port, with every connection known.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { AgentError } from "../../core/errors.ts";
import type { ListenAddress } from "../../lib/fields.ts";

type RequestHandler = (request: IncomingMessage, response: ServerResponse) => void;

export class Listener implements AsyncDisposable {
  readonly #handler: RequestHandler;
  readonly #sockets = new Set<Socket>();
  #address: ListenAddress;
  #server: Server | undefined;

  private constructor(address: ListenAddress, handler: RequestHandler) {
    this.#address = address;
    this.#handler = handler;
  }

  /** Resolves when connections are taken. Rejects with `PORT_IN_USE`. */
  static async open(address: ListenAddress, handler: RequestHandler): Promise<Listener> {
    const listener = new Listener(address, handler);
    await listener.open();
    return listener;
  }

  /** `http://host:port`, with the port that was really taken. */
  get origin(): string {
    const host = this.#address.host === "0.0.0.0" || this.#address.host === "::" ? "127.0.0.1" : this.#address.host;
    return `http://${host.includes(":") ? `[${host}]` : host}:${this.#address.port}`;
  }

  /** Takes connections again, on the same port as before. Nothing happens when it does already. */
  async open(): Promise<void> {
    if (this.#server) return;
    const server = createServer(
      { keepAliveTimeout: 65_000, headersTimeout: 20_000, requestTimeout: 60_000 },
      this.#handler,
    );
    // Who asks before sending a large body is answered by the same handler; see `continueIfAsked`.
    server.on("checkContinue", this.#handler);
    server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#address.port, this.#address.host, () => {
        server.off("error", reject);
        resolve();
      });
    }).catch((cause: unknown) => {
      const where = `${this.#address.host}:${this.#address.port}`;
      throw new AgentError("PORT_IN_USE", `cannot listen on ${where}`, { cause });
    });
    const address = server.address();
    if (typeof address === "object" && address !== null) this.#address = { ...this.#address, port: address.port };
    this.#server = server;
  }

  /** Resolves when no connection is left, and connecting is refused. */
  async close(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Tells a client that waits for it (`Expect: 100-continue`) to send its body. */
export function continueIfAsked(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
}
