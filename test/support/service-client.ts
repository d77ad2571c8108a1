// Calls to a local service in another process, over connections that stay open.
import { Agent, request } from "node:http";
import { text as textOf } from "node:stream/consumers";
import { basic, integration, password } from "./service.ts";

export interface ServiceClient extends Disposable {
  /** Resolves with the result. Rejects with the whole answer when it is an error. */
  call(method: string, params: object): Promise<Record<string, unknown>>;
  /** The same with a request as bytes. Resolves with the body of the answer. */
  post(body: Uint8Array): Promise<string>;
}

export function serviceClient(url: string, version = "1.1beta1"): ServiceClient {
  const agent = new Agent({ keepAlive: true });
  const headers = {
    "content-type": "application/json",
    authorization: basic(integration, password),
    "x-api-version": version,
  };
  const post = (body: Uint8Array) =>
    new Promise<string>((resolve, reject) => {
      const sent = request(
        `${url}/rpc`,
        { method: "POST", agent, headers: { ...headers, "content-length": body.length } },
        (response) => {
          textOf(response).then(
            (text) => (response.statusCode === 200 ? resolve(text) : reject(new Error(text))),
            reject,
          );
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  return {
    post,
    async call(method, params) {
      const text = await post(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })));
      const { result } = JSON.parse(text) as { result?: Record<string, unknown> }; // the service's envelope
      if (!result) throw new Error(text);
      return result;
    },
    [Symbol.dispose]: () => agent.destroy(),
  };
}
