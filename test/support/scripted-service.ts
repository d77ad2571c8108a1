// A service with any misbehaviour that a test needs. It stores what it accepts and records every request.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type ServerOptions, Server as TlsServer } from "node:https";
import type { AddressInfo } from "node:net";

interface Request {
  readonly jsonrpc: string;
  readonly id: number;
  readonly method: string;
  readonly params: {
    readonly integration: string;
    readonly data?: { readonly times: string[]; readonly series: Record<string, (number | null)[]> };
    readonly inputs?: Record<string, Record<string, unknown>>;
    readonly createOnly?: boolean;
  };
}

export interface SeenRequest {
  readonly request: Request;
  /** The time at which its headers were read, on the monotonic clock in milliseconds. */
  readonly start: number;
  readonly bytes: number;
  readonly headers: IncomingMessage["headers"];
}

/** Answers a request. `accept` stores it and returns the correct result. */
export type Behaviour = (exchange: {
  readonly request: Request;
  readonly response: ServerResponse;
  /** `part`: the part of the request to store; default: all of it. */
  readonly accept: (part?: Request) => Record<string, unknown>;
}) => void | Promise<void>;

/** Answers every request with this `status` and `body`. */
export const answers =
  (status: number, body = "", headers: Record<string, string> = {}): Behaviour =>
  ({ response }) => {
    response.writeHead(status, headers).end(body);
  };

/** A JSON-RPC response in which these members replace or extend the correct ones. */
export const says =
  (members: (accept: () => Record<string, unknown>, request: Request) => Record<string, unknown>): Behaviour =>
  ({ request, response, accept }) => {
    response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ jsonrpc: "2.0", id: request.id, ...members(accept, request) }));
  };

export const accepts = says((accept) => ({ result: accept() }));
export const fails = (code: number, data?: unknown): Behaviour =>
  says(() => ({ error: { code, message: "forbidden", data } }));

/** Stores all inputs except those for which `isBad` is true, and names these with −32021. */
export const refusing =
  (isBad: (input: string, values: readonly (number | null)[]) => boolean): Behaviour =>
  (exchange) => {
    const { request, accept } = exchange;
    const { times = [], series = {} } = request.params.data ?? {};
    const refused = Object.entries(series).flatMap(([input, values]) => (isBad(input, values) ? [input] : []));
    if (refused.length === 0) return accepts(exchange);
    const good = Object.fromEntries(Object.entries(series).filter(([input]) => !refused.includes(input)));
    const partialResult = accept({ ...request, params: { ...request.params, data: { times, series: good } } });
    const invalidResources = refused.map((id) => ({ id, type: "signals", message: "no such unit" }));
    return fails(-32021, { trace: "t2", partialResult, invalidResources })(exchange);
  };

export class ScriptedService implements AsyncDisposable {
  readonly #server: Server;
  readonly #tls: boolean;
  readonly seen: SeenRequest[] = [];
  /** `input time` → value, as `integration.insert` stored them. */
  readonly stored = new Map<string, number>();
  readonly signals = new Map<string, Record<string, unknown>>();
  /** The number of points that arrived and were already stored. */
  repeated = 0;
  /** Behaviours for the next requests of a method, one each; afterwards `otherwise` applies. */
  readonly script: Record<string, Behaviour[]> = { "integration.insert": [], "integration.saveSignals": [] };
  otherwise: Behaviour = accepts;
  /** Called before the body of a request is read. Returns true if it has handled the request. */
  atHead: ((incoming: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  #open = 0;
  /** The largest number of concurrent requests of one method. */
  mostOpen = 0;

  private constructor(tls: ServerOptions | undefined) {
    const serve = (request: IncomingMessage, response: ServerResponse) => void this.#serve(request, response);
    this.#tls = tls !== undefined;
    // A long timeout, so that a slow machine does not close connections.
    const patient = { keepAliveTimeout: 60_000 };
    this.#server = tls ? createTlsServer({ ...tls, ...patient }, serve) : createServer(patient, serve);
  }

  /** `port`: the port of a former service that it replaces, or of one at another address of this machine. */
  static async open(tls?: ServerOptions, port = 0, address = "127.0.0.1"): Promise<ScriptedService> {
    const service = new ScriptedService(tls);
    await new Promise<void>((resolve) => service.#server.listen(port, address, resolve));
    return service;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // bound to a TCP port
  }

  get url(): string {
    return this.#tls ? `https://localhost:${this.port}/v1` : `http://127.0.0.1:${this.port}/v1`;
  }

  /** Uses another certificate from now on, and closes existing connections. */
  certify(tls: ServerOptions): void {
    if (this.#server instanceof TlsServer) this.#server.setSecureContext(tls);
    this.#server.closeAllConnections();
  }

  requests(method: string): SeenRequest[] {
    return this.seen.filter(({ request }) => request.method === method);
  }

  /** The shortest interval between the starts of two requests of a method, in milliseconds. */
  closest(method: string): number {
    const starts = this.requests(method).map(({ start }) => start);
    return Math.min(...starts.slice(1).map((start, i) => start - starts[i]!));
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const start = performance.now();
    this.mostOpen = Math.max(this.mostOpen, ++this.#open);
    response.on("close", () => this.#open--);
    if (this.atHead?.(incoming, response)) return;
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer); // without an encoding, chunks are Buffers
    } catch {
      return;
    }
    const body = Buffer.concat(chunks);
    const request = JSON.parse(body.toString("utf8")) as Request; // tests check invalid requests themselves
    this.seen.push({ request, start, bytes: body.length, headers: incoming.headers });
    const behaviour = this.script[request.method]?.shift() ?? this.otherwise;
    await behaviour({ request, response, accept: (part = request) => this.store(part) });
  }

  /** Stores the content of a request. Returns the result. */
  store({ params: { data, inputs } }: Request): Record<string, unknown> {
    const signalsByInput: Record<string, { id: string; created: boolean }> = {};
    for (const [input, view] of Object.entries(inputs ?? {})) {
      this.signals.set(input, view);
      signalsByInput[input] = { id: signalId(input), created: true };
    }
    for (const [input, values] of Object.entries(data?.series ?? {})) {
      for (const [i, value] of values.entries()) {
        if (value === null) continue;
        const key = `${input} ${data?.times[i]}`;
        if (this.stored.has(key)) this.repeated++;
        this.stored.set(key, value);
      }
      signalsByInput[input] = { id: signalId(input), created: false };
    }
    return { signalsByInput };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export function signalId(input: string): string {
  return Buffer.from(input.padEnd(20, "0"))
    .toString("hex")
    .slice(0, 20)
    .replace(/[^a-v0-9]/g, "0")
    .padEnd(20, "0");
}
