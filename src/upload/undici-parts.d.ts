// The parts of undici that are used. Its index loads fetch, WebSocket, a cache and more: 9 MB that a gateway can use better.
interface UndiciPost {
  readonly origin: string;
  readonly path: string;
  readonly method: "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}
interface UndiciAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array> & { destroy(): void };
}
interface UndiciDispatcher {
  destroy(): Promise<void>;
}
interface UndiciOptions {
  readonly connections: number;
  readonly pipelining: number;
  /** Milliseconds, as all times here; 0: no limit. */
  readonly keepAliveTimeout: number;
  readonly headersTimeout: number;
  readonly bodyTimeout: number;
  readonly allowH2: boolean;
}
interface UndiciTls {
  readonly ca?: string;
}

declare module "undici/lib/dispatcher/pool.js" {
  const Pool: new (
    origin: string,
    options: UndiciOptions & { readonly connect: UndiciTls & { readonly timeout: number } },
  ) => UndiciDispatcher;
  export default Pool;
}
declare module "undici/lib/dispatcher/proxy-agent.js" {
  const ProxyAgent: new (
    options: UndiciOptions & { readonly uri: string; readonly requestTls: UndiciTls; readonly proxyTls: UndiciTls },
  ) => UndiciDispatcher;
  export default ProxyAgent;
}
declare module "undici/lib/api/api-request.js" {
  /** What the index makes a method of every dispatcher. */
  export default function request(this: UndiciDispatcher, options: UndiciPost): Promise<UndiciAnswer>;
}
