// Changes how a test server handles the requests of one service.
import type { OPCUAServer } from "node-opcua-server";

interface Message {
  readonly request: { endpointUrl?: string | null };
}
type Handler = (this: OPCUAServer, message: Message, channel: unknown) => unknown;

/** Calls `act` before the server handles a request. If it returns false, the request gets no answer. */
export function beforeRequest(server: OPCUAServer, request: string, act: (message: Message) => boolean) {
  const name = `_on_${request}Request`;
  const handle = Reflect.get(server, name) as Handler; // the server's internal handler
  Reflect.set(server, name, function (this: OPCUAServer, message: Message, channel: unknown) {
    return act(message) ? handle.call(this, message, channel) : undefined;
  });
}
