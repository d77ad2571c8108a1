// A local service for tests, and calls to it as a client would make them.
import type { Runtime } from "../../src/core/runtime.ts";
import { Secret } from "../../src/core/secret.ts";
import type { LocalServiceOptions } from "../../src/service/config/options.ts";
import type { Service } from "../../src/service/service.ts";
import { openService } from "../../src/service/service.ts";
import { testRuntime } from "./runtime.ts";

export const integration = "c8ktonqsahsmemfs7lv0";
export const password = "pass:word";

export interface RpcReply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body, if it is JSON. */
  readonly body: RpcBody | undefined;
}
interface RpcBody {
  readonly jsonrpc?: string;
  readonly id?: unknown;
  // Tests access and compare any member.
  readonly result?: Record<string, any>; // oxlint-disable-line typescript/no-explicit-any
  readonly error?: { code: number; message: string; data?: { trace: string; params?: Record<string, string[]> } };
}

export interface CallOptions {
  readonly version?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface TestService extends Service {
  call(method: string, params: unknown, options?: CallOptions): Promise<RpcReply>;
  post(body: string | Uint8Array<ArrayBuffer>, options?: CallOptions): Promise<RpcReply>;
}

/** By default in memory, unthrottled and with every grant. */
export async function testService(
  options: Partial<LocalServiceOptions> = {},
  runtime: Runtime = testRuntime(),
): Promise<TestService> {
  const service = await openService(
    {
      listen: { host: "127.0.0.1", port: 0 },
      data: ":memory:",
      integrations: [{ id: integration, password: new Secret(password), grants: ["admin", "platform"] }],
      namespace: "platform",
      throttle: "off",
      ...options,
    },
    runtime,
    new AbortController().signal,
  );
  const post = async (body: string | Uint8Array<ArrayBuffer>, { version, headers }: CallOptions = {}) => {
    const response = await fetch(`${service.url}/rpc`, {
      method: "POST",
      body,
      headers: {
        "content-type": "application/json",
        authorization: basic(integration, password),
        ...(version === undefined
          ? { "x-api-version": "1.1beta1" }
          : version === ""
            ? {}
            : { "x-api-version": version }),
        ...headers,
      },
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, body: json(text) };
  };
  return {
    ...service,
    post,
    call: (method, params, callOptions) => post(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }), callOptions),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

export function basic(username: string, secret: string): string {
  return `Basic ${Buffer.from(`${username}:${secret}`).toString("base64")}`;
}

function json(text: string): RpcBody | undefined {
  try {
    return JSON.parse(text) as RpcBody; // tests check the members
  } catch {
    return undefined;
  }
}
