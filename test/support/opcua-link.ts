// A connection to an OPC UA server that a test simulates, for parts of the source.
import * as ua from "node-opcua-client";
import type { Link } from "../../src/source/opcua/session/link.ts";

/**
 * `answer` returns the response to a request, or throws the error of the call. `more` are further members of the link.
 */
export function opcuaLink(answer: (request: object, signal: AbortSignal) => unknown, more: Partial<Link> = {}): Link {
  return {
    ua,
    lost: new AbortController().signal,
    subscriptions: new Set<number>(),
    ...more,
    async call(service: string, fields: object, signal: AbortSignal): Promise<unknown> {
      const [Request, Response] = [`${service}Request`, `${service}Response`].map((name) => Reflect.get(ua, name));
      const response = await answer(new Request(fields), signal);
      if (!(response instanceof Response)) throw new TypeError(`${service}: that is no response to it`);
      return response;
    },
  } as unknown as Link; // the only part that is used
}
