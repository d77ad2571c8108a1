// The judge of the bench in its own process: an HTTP server that accepts what tagferry and Telegraf send and counts
// every number in it. It answers like the service at /v1/rpc, and accepts Telegraf's JSON at /lines. The value of an
// MQTT message is its number / 1,000, so that duplicates are recognised.
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { benchChild } from "./child.ts";

/** Counted from the start. */
export interface SinkCounts {
  /** Numbers received in any request, without tagferry's own measurements. */
  readonly points: number;
  /** MQTT messages received, each counted once. */
  readonly messages: number;
  /** MQTT messages received again. */
  readonly repeated: number;
  readonly requests: number;
}

export interface CountingSink extends AsyncDisposable {
  /** Base address, without a path. */
  readonly url: string;
  counts(): Promise<SinkCounts>;
  /** Refuses connections until `up` is called; it then uses the same port. */
  down(): Promise<void>;
  up(): Promise<void>;
}

export async function countingSink(): Promise<CountingSink> {
  const child = await benchChild(fileURLToPath(import.meta.url), []);
  return {
    url: String(child.ready),
    counts: async () => (await child.ask("counts")) as SinkCounts, // sent by `main` below
    down: async () => void (await child.ask("down")),
    up: async () => void (await child.ask("up")),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

interface Frame {
  readonly times: readonly string[];
  readonly series: Readonly<Record<string, readonly (number | null)[]>>;
}
interface Call {
  readonly id: unknown;
  readonly params: { readonly data?: Frame; readonly inputs?: object; readonly signals?: object };
}
interface TelegrafBatch {
  readonly metrics: readonly { readonly name: string; readonly fields: Readonly<Record<string, unknown>> }[];
}

class Counter {
  #points = 0;
  #messages = 0;
  #repeated = 0;
  #requests = 0;
  #seen = new Uint8Array(2 ** 20);

  /** Counts a body. Returns the answer for the path. */
  take(path: string, body: string): string {
    this.#requests++;
    if (path === "/lines") {
      for (const { name, fields } of (JSON.parse(body) as TelegrafBatch).metrics)
        for (const value of Object.values(fields)) if (typeof value === "number") this.#count(name, value);
      return "";
    }
    const { id, params } = JSON.parse(body) as Call;
    const names = Object.keys(params.data?.series ?? params.inputs ?? params.signals ?? {});
    for (const [name, values] of Object.entries(params.data?.series ?? {}))
      for (const value of values) if (value !== null) this.#count(name, value);
    const signalsByInput = Object.fromEntries(names.map((name) => [name, { id: signalOf(name), created: false }]));
    return JSON.stringify({ jsonrpc: "2.0", id, result: { signalsByInput } });
  }

  counts(): SinkCounts {
    return { points: this.#points, messages: this.#messages, repeated: this.#repeated, requests: this.#requests };
  }

  #count(name: string, value: number): void {
    if (name.includes("/tagferry/")) return;
    this.#points++;
    if (!name.startsWith("mqtt")) return;
    const number = Math.round(value * 1_000);
    if (number >= this.#seen.length) {
      const larger = new Uint8Array(number * 2);
      larger.set(this.#seen);
      this.#seen = larger;
    }
    if (this.#seen[number] === 1) this.#repeated++;
    else this.#messages++;
    this.#seen[number] = 1;
  }
}

const signals = new Map<string, string>();

function signalOf(name: string): string {
  let signal = signals.get(name);
  if (signal === undefined) signals.set(name, (signal = `c${signals.size.toString(32).padStart(19, "0")}`));
  return signal;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer); // without an encoding, chunks are buffers
  const body = Buffer.concat(chunks);
  return (request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body).toString();
}

async function main(): Promise<void> {
  const counter = new Counter();
  const server = createServer((request, response) => {
    bodyOf(request).then(
      (body) => {
        const answer = counter.take(request.url ?? "", body);
        response.writeHead(200, { "content-type": "application/json" }).end(answer);
      },
      () => request.destroy(),
    );
  });
  server.keepAliveTimeout = 120_000;
  const listen = (port: number) => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", () => resolve()));
  await listen(0);
  const { port } = server.address() as AddressInfo;
  process.on("message", (question) => {
    if (question === "counts") process.send?.(counter.counts());
    if (question === "up") void listen(port).then(() => process.send?.("up"));
    if (question !== "down") return;
    server.close(() => process.send?.("down"));
    server.closeAllConnections();
  });
  process.on("disconnect", () => process.exit());
  process.send?.(`http://127.0.0.1:${port}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send) await main();
